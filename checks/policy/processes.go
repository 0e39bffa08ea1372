package policy

import "time"

// Processes holds the limits of package processes.
type Processes struct {
	Stuck  Duration `json:"stuck" yaml:"stuck"`   // uninterruptible for this long: with a GPU open a soft Fail, reboot; else watched (5m: leptonai/gpud, facebookresearch/gcm)
	Killed Duration `json:"killed" yaml:"killed"` // with SIGKILL pending, after this long: a soft Fail, reboot
}

func defaultProcesses() Processes {
	return Processes{Stuck: Duration(5 * time.Minute), Killed: Duration(time.Minute)}
}

func (v *validator) processes(p Processes) {
	v.within("processes.stuck", p.Stuck, time.Second, day)
	v.within("processes.killed", p.Killed, time.Second, day)
}
