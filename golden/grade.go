package golden

import "fmt"

// A Grade is what a mismatch of one kernel on one compute capability may do. The zero value is Lab.
type Grade uint8

const (
	Lab  Grade = iota // never run on that hardware, or not enough: a mismatch is watched
	Beta              // bit-equal on one healthy GPU of that capability: likewise
	Prod              // a stored record of bit-equal runs on at least 3 healthy GPUs in 2 nodes, 10,000 runs, cold and hot
)

var gradeNames = [...]string{"lab", "beta", "prod"}

func (g Grade) String() string {
	if int(g) < len(gradeNames) {
		return gradeNames[g]
	}
	return fmt.Sprintf("grade(%d)", g)
}

// A Record is the evidence for a grade: bit-equal runs of one kernel's code on one capability.
type Record struct {
	Digest     string `json:"digest"` // of the kernel's code; "*" only for the simulated GPU
	Capability int    `json:"capability"`
	GPUs       int    `json:"gpus"`  // healthy ones that took part
	Nodes      int    `json:"nodes"` // they were in
	Runs       int    `json:"runs"`
	Cold, Hot  bool
	Simulated  bool   `json:"simulated"` // the PTX machine, which says nothing of hardware
	By         string `json:"by"`        // who made the record, and from what
}

// Grade is what the record is enough for.
func (r Record) Grade() Grade {
	switch {
	case r.Simulated && r.By != "":
		return Prod
	case r.Digest == "*":
		return Lab
	case r.GPUs >= 3 && r.Nodes >= 2 && r.Runs >= 10_000 && r.Cold && r.Hot && r.By != "":
		return Prod
	case r.GPUs >= 1 && r.Runs >= 1:
		return Beta
	}
	return Lab
}

// Grades are the records that hold: those that came with the program, and those of the site. None has come with it so far:
// nothing here has run on silicon yet.
type Grades struct {
	Simulated bool // whether the GPU under test is the simulated one: records of the one kind say nothing of the other
	Records   []Record
}

// Of gives the grade of a kernel's code on a capability.
func (g Grades) Of(digest string, capability int) Grade {
	best := Lab
	for _, r := range g.Records {
		if r.Simulated == g.Simulated && r.Capability == capability && (r.Digest == digest || r.Digest == "*" && r.Simulated) {
			best = max(best, r.Grade())
		}
	}
	return best
}
