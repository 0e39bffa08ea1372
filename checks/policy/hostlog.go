package policy

import "time"

// HostLog holds the limits of package hostlog.
type HostLog struct {
	SoftLockup Duration `json:"soft_lockup" yaml:"soft_lockup"` // a CPU that is stuck for longer is a soft Fail, reboot
	HungTask   Duration `json:"hung_task" yaml:"hung_task"`     // a task of the GPU driver that is blocked for longer is a soft Fail, reboot
}

// defaultHostLog takes five minutes for a task, as leptonai/gpud takes for a process of the driver in five looks a minute
// apart, and two for a CPU: the kernel says so after 20 s first, and short ones pass.
func defaultHostLog() HostLog {
	return HostLog{SoftLockup: Duration(2 * time.Minute), HungTask: Duration(5 * time.Minute)}
}

func (v *validator) hostLog(h HostLog) {
	v.within("host_log.soft_lockup", h.SoftLockup, time.Second, 7*day)
	v.within("host_log.hung_task", h.HungTask, time.Second, 7*day)
}
