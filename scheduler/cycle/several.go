package cycle

import "github.com/assay-gpu/assay/scheduler/queue"

// other reports whether j is a job as it would be in another of its partitions, not the job itself.
func (c *Cycle) other(j *queue.Job) bool { return len(j.Partitions) > 0 && c.Queue.Job(j.ID) != j }

// anyway lets a job that a limit of one partition holds back, and that another would take, wait for what that says.
func (c *Cycle) anyway(entries []queue.Entry) {
	for _, e := range entries {
		if c.other(e.Job) && e.Job.Why.Code == queue.NoReason {
			c.Queue.Job(e.Job.ID).Why = queue.Reason{}
		}
	}
}
