package policy

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// DCGM says how NVIDIA's Data Center GPU Manager is asked, and what is made of its answers.
type DCGM struct {
	Required bool           `json:"required" yaml:"required"`         // a node without DCGM leaves the checks open; false: they do not apply there
	Health   string         `json:"health" yaml:"health"`             // how the health watches are asked: "off", "standalone" (a host engine that runs), "embedded" (an engine of our own)
	Address  string         `json:"address" yaml:"address"`           // of the host engine: HOST, HOST:PORT or unix:///PATH
	Every    Duration       `json:"every" yaml:"every"`               // between two looks at the health watches
	Settle   Duration       `json:"settle" yaml:"settle"`             // watches set for less than this prove nothing by being silent
	Deadline Duration       `json:"deadline" yaml:"deadline"`         // for one look
	Screen   int            `json:"screen" yaml:"screen"`             // level of dcgmi diag, 1 to 4, that screens of level standard and deeper run; 0: none
	R1       Duration       `json:"r1" yaml:"r1"`                     // deadline of dcgmi diag -r 1
	R2       Duration       `json:"r2" yaml:"r2"`                     // of -r 2
	R3       Duration       `json:"r3" yaml:"r3"`                     // of -r 3
	R4       Duration       `json:"r4" yaml:"r4"`                     // of -r 4
	Actions  map[int]string `json:"actions,omitempty" yaml:"actions"` // by DCGM error code: the action instead of the built-in one
}

// The settle time is dcgm_structs.h's: PCIe, thermal and power watches "must have 1m of data before query". The deadlines
// are several times what a level takes on eight GPUs: seconds, two minutes, half an hour, an hour and more.
func defaultDCGM() DCGM {
	s, m, h := Duration(time.Second), Duration(time.Minute), Duration(time.Hour)
	return DCGM{Health: "off", Address: "127.0.0.1:5555", Every: m, Settle: m, Deadline: 20 * s, R1: 5 * m, R2: 15 * m, R3: 90 * m, R4: 4 * h}
}

// Diag is the deadline of a level of the diagnostic; 0 for a level that does not exist.
func (d DCGM) Diag(level int) time.Duration {
	switch level {
	case 1:
		return d.R1.D()
	case 2:
		return d.R2.D()
	case 3:
		return d.R3.D()
	case 4:
		return d.R4.D()
	}
	return 0
}

// dcgm checks the section; screen is how long a screen may take.
func (v *validator) dcgm(d DCGM, screen Duration) {
	oneOf(v, "dcgm.health", d.Health, "off", "standalone", "embedded")
	v.within("dcgm.every", d.Every, time.Second, day)
	v.within("dcgm.settle", d.Settle, 0, time.Hour)
	v.within("dcgm.deadline", d.Deadline, time.Second, 10*time.Minute)
	if d.Screen < 0 || d.Screen > 4 {
		v.add("dcgm.screen", "%d: want 1 to 4, or 0 for none", d.Screen)
	}
	if most := d.Diag(d.Screen); most > screen.D() {
		v.add("dcgm.screen", "level %d may take %s, by dcgm.r%d, and a screen %s, by lifecycle.screen_deadline", d.Screen, Duration(most), d.Screen, screen)
	}
	for i, r := range []Duration{d.R1, d.R2, d.R3, d.R4} {
		v.within(fmt.Sprintf("dcgm.r%d", i+1), r, time.Second, day)
	}
	for code, name := range d.Actions {
		path := fmt.Sprintf("dcgm.actions.%d", code)
		if code < 1 {
			v.add(path, "want a DCGM error code, 1 or more")
		}
		var a checks.Action
		if err := a.UnmarshalText([]byte(name)); err != nil {
			v.add(path, "%v", err)
		}
	}
}
