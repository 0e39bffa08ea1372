package catalog

import (
	"maps"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/checks/user"
)

// Beside is what checks read that is not in the snapshot, each reading with its time. What is absent was not read.
type Beside struct {
	Health *HealthRead         `json:"dcgm_health,omitempty"`
	Diag   *DiagRead           `json:"dcgm_diag,omitempty"` // of the last screen that ran one
	User   map[string]UserRead `json:"user,omitempty"`      // by name, without user/
	Golden *GoldenRead         `json:"golden,omitempty"`    // of each GPU's last run that counts
}

// A HealthRead is what DCGM's health watches said.
type HealthRead struct {
	At     time.Time   `json:"at"`
	Health dcgm.Health `json:"health"`
}

// A DiagRead is one run of dcgmi diag, with what it wrote as it stands: a later program may read more from it.
type DiagRead struct {
	At      time.Time `json:"at"`                // when it ended
	Level   int       `json:"level"`             // 1 to 4
	Output  string    `json:"output,omitempty"`  // standard output
	Exit    *int      `json:"exit,omitempty"`    // its exit status; nil when it did not end by itself
	Missing string    `json:"missing,omitempty"` // why there is no dcgmi on the node; empty: there is one
	Trouble string    `json:"trouble,omitempty"` // how it ended, when not by itself and in time
}

// Report reads the output.
func (d DiagRead) Report() dcgm.Report {
	if d.Missing != "" {
		return dcgm.Report{Missing: d.Missing}
	}
	r := dcgm.Parse(d.Output)
	r.Exit = d.Exit
	if d.Trouble != "" {
		r.Runtime = append(r.Runtime, d.Trouble)
	}
	return r
}

// A UserRead is one run of a user check.
type UserRead struct {
	At      time.Time    `json:"at"` // when it ended
	Outcome user.Outcome `json:"outcome"`
}

// A GoldenRead is what golden runs said.
type GoldenRead struct {
	At      time.Time              `json:"at"`      // when the last of them ended
	GPUs    []checks.GPU           `json:"gpus"`    // that were to run
	Results map[string]sdc.Reading `json:"results"` // by UUID
}

// A GoldenAsk is what golden kernels to run.
type GoldenAsk struct {
	Suite   string
	GPUs    []checks.GPU
	Kernels []string      // only these; nil: all of the suite
	First   []string      // kernels that once caught a device
	Corpora string        // a folder: the programs kept there and its corpus of the day run after the suite; empty: none
	Seed    int           // the first seed; below 0: at random
	Within  time.Duration // that the run may take
	For     time.Duration // that it is to last
	Leave   time.Duration // how long a child that was told to stop is waited for; 0: to its end
}

// Empty reports whether nothing was read.
func (b Beside) Empty() bool {
	return b.Health == nil && b.Diag == nil && len(b.User) == 0 && b.Golden == nil
}

// With gives b with what o holds in its stead.
func (b Beside) With(o Beside) Beside {
	if o.Health != nil {
		b.Health = o.Health
	}
	if o.Diag != nil {
		b.Diag = o.Diag
	}
	if o.User != nil {
		b.User = o.User
	}
	if o.Golden != nil {
		b.Golden = o.Golden
	}
	return b
}

// JudgeBeside judges what policy still has read. screen is the level of the screen that it is for; NoLevel in the
// background, which the diagnostic is no part of. What is open counts for a screen only where the screen was to wait for it.
func JudgeBeside(b Beside, screen checks.Level, known checks.Inventory, p policy.Policy) []checks.Finding {
	var out []checks.Finding
	add := func(fs []checks.Finding, at time.Time, waits bool) {
		for _, f := range fs {
			f.At = at
			if screen == checks.NoLevel || waits || f.Verdict != checks.Unknown {
				out = append(out, f)
			}
		}
	}
	if h := b.Health; h != nil && p.DCGM.Health != "off" {
		// A silence that proves nothing yet holds no screen up: DCGM needs its minute, and no screen was asked to wait.
		add(JudgeDCGMHealth(h.Health, known, p), h.At, p.DCGM.Required && h.Health.Have != checks.Read)
	}
	if d := b.Diag; d != nil && p.DCGM.Screen > 0 && screen >= checks.Standard {
		add(JudgeDCGM(d.Report(), known, p), d.At, true)
	}
	for _, name := range slices.Sorted(maps.Keys(b.User)) {
		if u, ok := p.UserChecks[name]; ok {
			add(JudgeUser(name, b.User[name].Outcome, known, p), b.User[name].At, u.Screen)
		}
	}
	if g := b.Golden; g != nil && p.Golden.Runs() {
		known.GPUs = g.GPUs
		add(JudgeSDC(g.Results, g.At, known, p), g.At, true)
		// A quick screen measures it where it has the time.
		add(JudgeBandwidth(g.Results, g.At, known, p), g.At, screen >= checks.Standard)
	}
	return out
}
