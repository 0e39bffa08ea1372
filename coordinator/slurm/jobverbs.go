package slurm

import (
	"context"
	"fmt"
)

// AnyRestarts stands for no expectation of a job's restart count.
const AnyRestarts = -1

// Requeue stops a running job and puts it back in the queue. restarts is the count it must still have, or AnyRestarts: a
// job that was requeued in the meantime has been restarted already, and is left alone with a *ChangedError.
func (c *Client) Requeue(ctx context.Context, id string, restarts int) error {
	j, err := c.expectRunning(ctx, "requeue", id, restarts)
	if err != nil {
		return err
	}
	if !j.Requeue {
		return &RefusedError{Verb: "requeue", Target: id, Msg: "its owner said --no-requeue", Advice: "wait for it, or cancel it"}
	}
	return c.change(ctx, "requeue", c.cfg.Scontrol, "requeue", id)
}

// Cancel ends a running job for good, under the same condition as Requeue.
func (c *Client) Cancel(ctx context.Context, id string, restarts int) error {
	if _, err := c.expectRunning(ctx, "cancel", id, restarts); err != nil {
		return err
	}
	return c.change(ctx, "cancel", c.cfg.Scancel, id)
}

func (c *Client) expectRunning(ctx context.Context, verb, id string, restarts int) (Job, error) {
	j, ok, err := c.job(ctx, verb, id)
	switch {
	case err != nil:
		return j, err
	case !ok:
		return j, &ChangedError{Verb: verb, Target: id, What: "the job has ended", Done: verb == "cancel"}
	case !j.OnNodes() || j.State == "COMPLETING":
		return j, &ChangedError{Verb: verb, Target: id, What: "the job is " + j.State,
			Done: verb == "cancel" && j.State == "COMPLETING" || verb == "requeue" && restarts != AnyRestarts && j.Restarts > restarts}
	case restarts != AnyRestarts && j.Restarts != restarts:
		return j, &ChangedError{Verb: verb, Target: id, What: fmt.Sprintf("restart %d of it runs, not %d", j.Restarts, restarts), Done: verb == "requeue" && j.Restarts > restarts}
	}
	return j, nil
}

// Release lets a job go that Slurm holds since a prolog failed, and no other. restarts is the count of that very hold:
// after a later failure the hold is another one. A job held by a person, for whatever reason, is never released.
func (c *Client) Release(ctx context.Context, id string, restarts int) error {
	j, ok, err := c.job(ctx, "release", id)
	switch {
	case err != nil:
		return err
	case !ok:
		return &ChangedError{Verb: "release", Target: id, What: "the job has ended"}
	case !j.HeldByLaunchFailure():
		return &ChangedError{Verb: "release", Target: id, What: fmt.Sprintf("the job is %s, %q, with priority %d: not held by a failed launch", j.State, j.Reason, j.Priority),
			Done: j.Priority != 0 || j.State != "PENDING"}
	case restarts != AnyRestarts && j.Restarts != restarts:
		return &ChangedError{Verb: "release", Target: id, What: fmt.Sprintf("it is held after restart %d, not %d", j.Restarts, restarts)}
	}
	return c.change(ctx, "release", c.cfg.Scontrol, "release", id)
}
