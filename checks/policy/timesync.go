package policy

import "time"

// TimeSync holds what is expected of a node's wall clock.
type TimeSync struct {
	Require  bool     `json:"require" yaml:"require"`     // a clock that is off is a soft Fail, fix_config; else it is watched
	MaxError Duration `json:"max_error" yaml:"max_error"` // by the kernel's own bound, which grows by 500 µs a second between corrections
	After    Duration `json:"after" yaml:"after"`         // followed nothing for this long: it counts
}

func defaultTimeSync() TimeSync {
	return TimeSync{Require: false, MaxError: Duration(2 * time.Second), After: Duration(10 * time.Minute)}
}

func (v *validator) timesync(t TimeSync) {
	v.within("timesync.max_error", t.MaxError, time.Millisecond, day)
	v.within("timesync.after", t.After, 0, day)
}
