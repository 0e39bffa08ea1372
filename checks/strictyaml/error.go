package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Fault is one thing wrong with a file.
type Fault struct {
	Line    int    // from 1; 0 when the fault has no place
	Column  int    // from 1, in bytes as the parser counts them; 0 when the fault has no place
	Path    string // the value, as agent.interval or gpus[3].uuid; empty for the whole file
	Message string
}

// An Error holds every fault found in one file.
type Error struct {
	File   string
	Faults []Fault
}

// Add adds a fault, as callers do for what only they can judge.
func (e *Error) Add(line, column int, path, format string, args ...any) {
	e.Faults = append(e.Faults, Fault{line, column, path, fmt.Sprintf(format, args...)})
}

// Err is e when it holds a fault and nil otherwise.
func (e *Error) Err() error {
	if len(e.Faults) == 0 {
		return nil
	}
	return e
}

// Error prints one line for each fault, in the order of the file.
func (e *Error) Error() string {
	faults := slices.Clone(e.Faults)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var b strings.Builder
	for i, f := range faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		if f.Path != "" {
			b.WriteString(": " + f.Path)
		}
		b.WriteString(": " + f.Message)
	}
	return b.String()
}

// Hint says what to do about the faults.
func (e *Error) Hint() string {
	if len(e.Faults) == 1 {
		return "correct the line named above; nothing in " + e.File + " was used"
	}
	return fmt.Sprintf("correct the %d lines named above; nothing in %s was used", len(e.Faults), e.File)
}

// A Position is a place in a file.
type Position struct{ Line, Column int }

// Lines holds where each value of a file stands, by path. A caller that judges decoded values names their lines with it.
type Lines map[string]Position

// At gives the place of the value at path or, where the file does not set it, of the nearest value around it.
func (l Lines) At(path string) (line, column int) {
	for {
		if p, ok := l[path]; ok {
			return p.Line, p.Column
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0, 0
		}
		path = path[:i]
	}
}
