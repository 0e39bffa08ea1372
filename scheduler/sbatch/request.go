package sbatch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/scheduler"
)

// A Request is what the options of a job say.
type Request struct {
	Name        string
	Gang        scheduler.Gang
	Partition   string
	Account     string
	QOS         string
	Dir         string
	Output      string
	Error       string    // only told apart when it is another file than Output
	Begin       time.Time // zero: at once
	Deadline    time.Time // zero: none
	Reservation string
	After       string // as --dependency
	Export      []string
	ExportAll   bool // the submitter's environment: sbatch's default
	Requeue     bool
	Hold        bool
	Nice        int
	Array       []int // indices of the tasks, sorted; nil: no array
	Throttle    int   // of them at once; 0: all

	now      time.Time
	parallel *scheduler.Parallel

	nodes, ntasks, perNode, gpus, gpusPerNode, gpusPerTask int
	gpuType                                                string
}

// A Fault is one option that cannot be.
type Fault struct {
	Line   int // of the script; 0: the command line
	Option string
	Text   string
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.Option + ": " + f.Text
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Option, f.Text)
}

// A FaultsError lists every fault at once.
type FaultsError struct{ Faults []Fault }

func (e *FaultsError) Error() string {
	if len(e.Faults) == 1 {
		return e.Faults[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults", len(e.Faults))
	for _, f := range e.Faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// Hint says what to do.
func (e *FaultsError) Hint() string {
	return "correct the #SBATCH lines, or give the options that assay knows on the command line: they win over the script's"
}

// Parse reads the options of a script, and then those of the command line, which win. ignored lists the options that were
// taken and mean nothing here. All faults come in one *FaultsError. Times are read by the clock of now, in its zone.
func Parse(script string, args []string, now time.Time) (r Request, ignored []string, err error) {
	p := &parser{r: Request{ExportAll: true, now: now}}
	n := 0
	for line := range strings.Lines(script) {
		n++
		line = strings.TrimRight(line, "\r\n")
		text, ok := strings.CutPrefix(line, "#SBATCH")
		switch {
		case ok && (text == "" || text[0] == ' ' || text[0] == '\t'):
			words, bad := split(text)
			if bad != "" {
				p.fault(n, "#SBATCH", "%s", bad)
				continue
			}
			p.options(n, words)
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		default:
			n = -1 // sbatch looks no further than the first command
		}
		if n < 0 {
			break
		}
	}
	if rest := p.options(0, args); len(rest) > 0 {
		p.fault(0, rest[0], "not an option")
	}
	p.finish()
	if len(p.faults) > 0 {
		return p.r, p.ignored, &FaultsError{p.faults}
	}
	return p.r, p.ignored, nil
}

// Words cuts a line into words as Parse does those of a script.
func Words(line string) ([]string, error) {
	words, bad := split(line)
	if bad != "" {
		return nil, errors.New(bad)
	}
	return words, nil
}

// split cuts a line into words as a shell would: quotes join, and # begins a comment.
func split(s string) (words []string, bad string) {
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == '#' && !in:
			return words, ""
		case c == ' ' || c == '\t':
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Sprintf("a quotation mark %c is never closed", quote)
	}
	if in {
		words = append(words, b.String())
	}
	return words, ""
}
