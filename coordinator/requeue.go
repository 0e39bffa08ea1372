package coordinator

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// requeueJob puts a job back into the queue under its own number: one that runs is ended on all its nodes first, one that has
// ended goes through the door as a new one does.
func (l *lead) requeueJob(t *tx, j job, by, reason string) error {
	why := "requeued by " + by
	if reason != "" {
		why += ": " + reason
	}
	x, launched := t.launch(j.Launch)
	switch {
	case j.State == jobPending:
		return &refusedError{fmt.Sprintf("job %d waits already", j.ID), "`assay job why` says for what"}
	case j.over():
		j = fresh(j, t.now)
		if err := l.entrance(t).admit(t, j, 1); err != nil {
			return err
		}
	case !launched || x.Phase == commit.Ending:
		return &refusedError{fmt.Sprintf("job %d is being ended", j.ID), "say it again when it has"}
	default:
		x.Launch = x.Requeue(why, t.now)
		t.setLaunch(x)
		j.State = jobEnding
	}
	j.Reason = why
	t.setJob(j)
	t.record(wire.HistoryEntry{Event: fmt.Sprintf("job %d requeue", j.ID), By: by, Detail: detail(reason)})
	return nil
}

// waitsAgain has a job that ran in one of its partitions wait in all of them.
func (j *job) waitsAgain() {
	if len(j.Queue.Partitions) > 0 {
		j.Partition = strings.Join(j.Queue.Partitions, ",")
	}
}

// fresh is a job that has ended as if it had just been submitted: nothing that went wrong before counts against it. How often
// it was launched stays, since launches have that number in their names.
func fresh(j job, now time.Time) job {
	j.State, j.Code, j.Nodes, j.Launch, j.Exit, j.Ending = jobPending, "", "", "", 0, nil
	j.Submitted, j.Started, j.Ended = now, time.Time{}, time.Time{}
	j.waitsAgain()
	q := &j.Queue
	q.State, q.Submit, q.Accrue, q.Start, q.End, q.Exit, q.Why = queue.Pending, now.Unix(), 0, 0, 0, 0, queue.Reason{}
	q.HeldUser, q.HeldAdmin, q.Attempts, q.NotBefore, q.Expedited, q.Bad = false, false, 0, 0, false, nil
	return j
}
