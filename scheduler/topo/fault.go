package topo

import "fmt"

// A Fault is one thing wrong with a topology file.
type Fault struct {
	Line int    `json:"line,omitempty"` // 1 is the first; 0 where the fault is of the whole file
	Odd  bool   `json:"odd,omitempty"`  // the rest still makes a tree, as Slurm would read it; else the line was left out
	Text string `json:"text"`
}

func (f Fault) String() string {
	kind := "error"
	if f.Odd {
		kind = "warning"
	}
	if f.Line == 0 {
		return kind + ": " + f.Text
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, kind, f.Text)
}
