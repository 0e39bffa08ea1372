package policy

import "time"

// Agent holds the agent's intervals and deadlines.
type Agent struct {
	Interval      Duration `json:"interval" yaml:"interval"`             // between background cycles
	Heartbeat     Duration `json:"heartbeat" yaml:"heartbeat"`           // between heartbeats
	CallDeadline  Duration `json:"call_deadline" yaml:"call_deadline"`   // for one GPU's calls together
	InitDeadline  Duration `json:"init_deadline" yaml:"init_deadline"`   // for nvmlInit
	HungChildren  int      `json:"hung_children" yaml:"hung_children"`   // fresh children running in which a call must hang to be a Fail
	StuckChild    Duration `json:"stuck_child" yaml:"stuck_child"`       // a child alive this long after SIGKILL is a Fail
	SpoolBytes    int64    `json:"spool_bytes" yaml:"spool_bytes"`       // most that unsent reports may take on disk
	IncidentGap   Duration `json:"incident_gap" yaml:"incident_gap"`     // findings this close may share a root cause
	IncidentCause Duration `json:"incident_cause" yaml:"incident_cause"` // a channel teardown this long after its cause still belongs to it
}

func defaultAgent() Agent {
	return Agent{
		Interval: 30 * second, Heartbeat: 10 * second, CallDeadline: 5 * second, InitDeadline: 30 * second, HungChildren: 3, StuckChild: 60 * second,
		SpoolBytes: 64 << 20, IncidentGap: 30 * second, IncidentCause: 45 * second,
	}
}

func (v *validator) agent(a Agent) {
	v.within("agent.interval", a.Interval, 100*time.Millisecond, time.Hour)
	v.within("agent.heartbeat", a.Heartbeat, 100*time.Millisecond, 10*time.Minute)
	v.within("agent.call_deadline", a.CallDeadline, 100*time.Millisecond, 5*time.Minute)
	v.within("agent.init_deadline", a.InitDeadline, 100*time.Millisecond, 10*time.Minute)
	atLeast(v, "agent.hung_children", a.HungChildren, 1)
	v.within("agent.stuck_child", a.StuckChild, time.Second, time.Hour)
	atLeast(v, "agent.spool_bytes", a.SpoolBytes, 1<<20)
	v.within("agent.incident_gap", a.IncidentGap, 0, time.Hour)
	v.within("agent.incident_cause", a.IncidentCause, 0, time.Hour)
}
