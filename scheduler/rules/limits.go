package rules

import (
	"github.com/assay-gpu/assay/scheduler/queue"
)

// Limits are what a QOS, an account or a user may have at once. What is left out is not limited. The names are Slurm's, in
// the comments as sacctmgr has them.
type Limits struct {
	Jobs       *int    `json:"jobs,omitempty" yaml:"jobs"`                     // running, all together: GrpJobs
	Submit     *int    `json:"submit,omitempty" yaml:"submit"`                 // running and waiting, all together: GrpSubmitJobs
	Hold       Amounts `json:"hold,omitempty" yaml:"hold"`                     // held by all together: GrpTRES
	RunMinutes Amounts `json:"run_minutes,omitempty" yaml:"run_minutes"`       // amounts times the minutes that running jobs may still run: GrpTRESRunMins
	Minutes    Amounts `json:"minutes,omitempty" yaml:"minutes"`               // amounts times minutes used, fading with the half-life: GrpTRESMins
	MaxJobs    *int    `json:"max_jobs,omitempty" yaml:"max_jobs"`             // running, of each user of a QOS; of an account, its users' own: MaxJobs
	MaxSubmit  *int    `json:"max_submit,omitempty" yaml:"max_submit"`         // running and waiting, likewise: MaxSubmitJobs
	AccJobs    *int    `json:"account_jobs,omitempty" yaml:"account_jobs"`     // of a QOS, for each account: MaxJobsPA
	AccSubmit  *int    `json:"account_submit,omitempty" yaml:"account_submit"` // of a QOS, for each account: MaxSubmitPA
	Accrue     *int    `json:"accrue,omitempty" yaml:"accrue"`                 // of a QOS: jobs of one user whose age counts: MaxJobsAccruePU
	PerUser    Amounts `json:"per_user,omitempty" yaml:"per_user"`             // of a QOS, for each user: MaxTRESPU
	PerAccount Amounts `json:"per_account,omitempty" yaml:"per_account"`       // of a QOS, for each account: MaxTRESPA
	PerJob     Amounts `json:"per_job,omitempty" yaml:"per_job"`               // of one job: MaxTRES
	PerNode    Amounts `json:"per_node,omitempty" yaml:"per_node"`             // of one job on one node: MaxTRESPerNode
	Wall       Time    `json:"wall,omitzero" yaml:"wall"`                      // of one job: MaxWall
}

// queue is l as package queue has it.
func (l *Limits) queue(priority int) queue.Limits {
	out := queue.NoLimits()
	out.Priority = priority
	for _, x := range []struct {
		from *int
		to   *int
	}{
		{l.Jobs, &out.GrpJobs}, {l.Submit, &out.GrpSubmit}, {l.MaxJobs, &out.MaxJobs}, {l.MaxSubmit, &out.MaxSubmit},
		{l.AccJobs, &out.MaxJobsPerAccount}, {l.AccSubmit, &out.MaxSubmitPerAccount}, {l.Accrue, &out.MaxAccrue},
	} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	out.Grp, out.GrpRunMinutes, out.GrpMinutes = l.Hold.must(), l.RunMinutes.must(), l.Minutes.must()
	out.MaxPerUser, out.MaxPerAccount, out.MaxPerJob, out.MaxPerNode = l.PerUser.must(), l.PerAccount.must(), l.PerJob.must(), l.PerNode.must()
	if l.Wall > 0 {
		out.MaxWall = int64(l.Wall)
	}
	return out
}

// faults names what cannot be a limit.
func (l *Limits) faults(bad func(format string, args ...any)) {
	for name, n := range map[string]*int{"jobs": l.Jobs, "submit": l.Submit, "max_jobs": l.MaxJobs, "max_submit": l.MaxSubmit,
		"account_jobs": l.AccJobs, "account_submit": l.AccSubmit, "accrue": l.Accrue} {
		if n != nil && *n < 0 {
			bad("limits.%s: %d is below nothing; leave it out for no limit", name, *n)
		}
	}
	for name, a := range map[string]Amounts{"hold": l.Hold, "run_minutes": l.RunMinutes, "minutes": l.Minutes, "per_user": l.PerUser,
		"per_account": l.PerAccount, "per_job": l.PerJob, "per_node": l.PerNode} {
		if _, err := a.limit(); err != nil {
			bad("limits.%s: %v", name, err)
		}
	}
	if l.Wall < 0 {
		bad("limits.wall: a time below nothing")
	}
}

// onlyQOS names the limits of a QOS that mean nothing for an account.
func (l *Limits) onlyQOS(bad func(format string, args ...any)) {
	if l.AccJobs != nil || l.AccSubmit != nil || l.Accrue != nil || l.PerUser != "" || l.PerAccount != "" {
		bad("limits: account_jobs, account_submit, accrue, per_user and per_account are limits of a QOS")
	}
}
