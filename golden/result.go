package golden

import (
	"fmt"
	"slices"
	"strings"
)

// A Result is what a worker has to say of one GPU. Its zero value says nothing was tested.
type Result struct {
	Suite      string  `json:"suite"`
	Size       string  `json:"size"`
	GPU        Device  `json:"gpu"`
	Stages     []Stage `json:"stages"`
	Corpus     string  `json:"corpus,omitempty"`      // version of the corpus whose programs are among the stages
	Left       int     `json:"corpus_left,omitempty"` // programs of it that there was no time for
	CorpusErr  string  `json:"corpus_err,omitempty"`  // why none of its programs ran, though policy asks for them
	Err        string  `json:"err,omitempty"`         // why the run ended early, or never began
	Blame      Blame   `json:"blame,omitempty"`
	Seconds    float64 `json:"seconds"`     // from the start of the process to the end
	CPUSeconds float64 `json:"cpu_seconds"` // of the process
}

// A Blame says what an error speaks against. The zero value: nothing is known.
type Blame string

const (
	BlameHost   Blame = "host"   // this CPU computes something else than the embedded golden
	BlameSetup  Blame = "setup"  // library, driver, permissions, mode: not the GPU's silicon
	BlameDevice Blame = "device" // the device reported an error of its own
)

// A Device is a GPU as the CUDA driver names it.
type Device struct {
	UUID       string `json:"uuid"`
	Name       string `json:"name"`
	PCI        string `json:"pci"`
	Capability int    `json:"capability"` // 10 · major + minor
	SMs        int    `json:"sms"`
	MaxMHz     int    `json:"max_mhz,omitempty"` // SM clock at the highest; 0: the driver does not tell
	Driver     int    `json:"driver"`            // cuDriverGetVersion: 1000 · major + 10 · minor
	Library    string `json:"library,omitempty"`
	Simulated  bool   `json:"simulated,omitempty"` // the library says of itself that it is no GPU
}

// A Stage is one kernel, or one test of copies, with one seed.
type Stage struct {
	Kernel    string   `json:"kernel"`
	Digest    string   `json:"digest"` // of the kernel's code
	Seed      int      `json:"seed"`
	Code      string   `json:"code,omitempty"`      // that ran: Cubin or JIT
	Target    string   `json:"target,omitempty"`    // of machine code, as sm_90
	Cubin     string   `json:"cubin,omitempty"`     // its digest
	Unaudited string   `json:"unaudited,omitempty"` // why it was not machine code that the gate has looked at
	Err       string   `json:"err,omitempty"`       // why the stage says nothing
	Skip      string   `json:"skip,omitempty"`      // why it does not apply to this GPU
	Words     int      `json:"words"`               // compared for each SM
	SMs       []SM     `json:"sms,omitempty"`
	Canary    Canary   `json:"canary"`
	Retests   []Rerun  `json:"retests,omitempty"`
	Copy      *Copy    `json:"copy,omitempty"` // of a test of copies, which has no SMs
	Seconds   float64  `json:"seconds"`
	Slow      float64  `json:"slow,omitempty"` // seconds that a launch took, when that is longer than the suite allows
	Runs      int      `json:"runs,omitempty"` // more runs, with other seeds, that gave the golden on every SM; Seconds and Exposure hold them too
	Exposure  Exposure `json:"exposure,omitzero"`
}

// What a stage's code may have been.
const (
	Cubin = "cubin" // the audited machine code that is shipped
	JIT   = "jit"   // PTX, assembled by the driver: unaudited
)

// Ran is the code that ran, in a word: as cubin:sm_90:DIGEST.
func (s Stage) Ran() string {
	if s.Code == Cubin {
		return strings.Join([]string{Cubin, s.Target, s.Cubin}, ":")
	}
	return s.Code
}

// Add takes in a stage and reports whether it stands by itself. A clean run of a kernel that was clean before, with another
// seed, only counts there: a suite that runs for an hour must not take gigabytes to tell.
func (r *Result) Add(s Stage) bool {
	clean := func(s Stage) bool { return s.Skip == "" && s.Slow == 0 && s.Gap(r.GPU.SMs) == "" }
	if clean(s) {
		for i := range r.Stages {
			if o := &r.Stages[i]; o.Kernel == s.Kernel && o.Digest == s.Digest && o.Ran() == s.Ran() && clean(*o) && o.Copy.peer() == s.Copy.peer() {
				o.Runs, o.Seconds, o.Exposure = o.Runs+1, o.Seconds+s.Seconds, o.Exposure.Plus(s.Exposure)
				o.Copy.slowest(s.Copy)
				return false
			}
		}
	}
	if i := slices.IndexFunc(r.Stages, func(o Stage) bool { return o.Skip != "" && o.Kernel == s.Kernel && s.Skip != "" }); i >= 0 {
		return false // it does not apply, whatever the seed
	}
	r.Stages = append(r.Stages, s)
	return true
}

// An SM is what one SM gave. Only those that a block claimed and finished are listed.
type SM struct {
	SM       int       `json:"sm"`
	Verified int       `json:"verified"` // blocks whose every word was the golden's
	Moved    int       `json:"moved"`    // blocks that ended on another SM than they began on: not attributed
	Warps    int       `json:"warps"`    // of a block; warp w is in partition w mod 4
	Mismatch *Mismatch `json:"mismatch,omitempty"`
}

// A Mismatch is one block's wrong output.
type Mismatch struct {
	Words   int     `json:"words"`   // that differ
	Threads []int   `json:"threads"` // that differ in any word; the first 64
	First   Word    `json:"first"`   // by thread, then word
	Digest  string  `json:"digest"`  // of all words of the block
	Reread  bool    `json:"reread"`  // a second copy from the device was the same
	Inputs  bool    `json:"inputs"`  // the inputs were intact after the run
	Cores   []int   `json:"cores"`   // of the host's CPU, that computed the golden anew
	Where   *Origin `json:"where,omitempty"`
}

// A Word is one wrong word.
type Word struct {
	Thread   int    `json:"thread"`
	Word     int    `json:"word"`
	Expected uint32 `json:"expected"`
	Got      uint32 `json:"got"`
}

// An Origin is where a mismatch began, found by running again with fewer steps.
type Origin struct {
	Step      int    `json:"step"` // the first whose result is wrong
	Thread    int    `json:"thread"`
	Partition int    `json:"partition"`
	Lane      int    `json:"lane"`
	Word      int    `json:"word"` // of the state
	Expected  uint32 `json:"expected"`
	Got       uint32 `json:"got"`
	Threads   int    `json:"threads"` // wrong after that step

	Operands []uint32 `json:"operands,omitempty"` // the thread's state before that step
	Stuck    *Stuck   `json:"stuck,omitempty"`    // the single stuck bit that explains every wrong word; nil: none does
}

// A Stuck is one bit of a unit's result that is always the same, in the origin's partition.
type Stuck struct {
	Unit string `json:"unit"` // as in fault files: tensor16
	Lane string `json:"lane"` // a number, "quad:n" or "all"
	Bit  int    `json:"bit"`  // of the unit's result, 0 the lowest
	At   int    `json:"at"`   // 0 or 1
}

func (s Stuck) String() string {
	lane := "lane " + s.Lane
	if s.Lane == "all" {
		lane = "all lanes"
	}
	return fmt.Sprintf("bit %d of %s stuck at %d in %s", s.Bit, s.Unit, s.At, lane)
}

// A Canary is a planted error and what became of it.
type Canary struct {
	SM     int  `json:"sm"`     // NoSM for a copy
	Thread int  `json:"thread"` // the byte's offset for a copy
	Seen   bool `json:"seen"`   // reported at that SM and thread, and nowhere else
	Tried  bool `json:"tried"`  // false: none was planted
}

// A Rerun is a repetition after a mismatch.
type Rerun struct {
	Seed   int    `json:"seed"`
	Launch int    `json:"launch"`
	Wrong  []int  `json:"wrong"` // SMs whose output differed
	Err    string `json:"err,omitempty"`
}

// Reproduced is how many reruns with the same seed were wrong on the SM again.
func (s Stage) Reproduced(sm int) int {
	n := 0
	for _, r := range s.Retests {
		if r.Seed == s.Seed && slices.Contains(r.Wrong, sm) {
			n++
		}
	}
	return n
}

// Covered is how many of the GPU's SMs the stage has verified.
func (s Stage) Covered() int {
	n := 0
	for _, m := range s.SMs {
		if m.Verified > 0 {
			n++
		}
	}
	return n
}
