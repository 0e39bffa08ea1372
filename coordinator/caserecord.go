package coordinator

import (
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// What a case's record holds at the most.
const (
	jobsBefore   = 64
	jobsAfter    = 4
	timelineKept = 200 // entries: some 120 KiB of etcd's 1.5 MiB
)

// jobsAfterFor is how long after a case the next jobs on its node are noted in it.
const jobsAfterFor = 30 * 24 * time.Hour

// mirrorCase keeps the case's record equal to what the node says of its open case.
func (t *tx) mirrorCase(n lifecycle.Node) {
	if n.Case == nil {
		return
	}
	c := t.caseOf(n.Case.ID)
	c.ID, c.Node, c.Opened = n.Case.ID, n.Name, n.Case.Opened
	c.Cause, c.Part, c.Action, c.Level = n.Case.Cause, n.Case.Part, n.Case.Action, n.Case.Level
	c.Owner, c.Next, c.Deadline, c.Attempts, c.Gathered = n.Case.Owner, n.Case.Next, n.Deadline, n.Case.Rungs, n.Case.Evidence
	c.Before = withJobs(c.Before, n.Jobs, jobsBefore)
	t.cases[c.ID] = c
}

// withJobs adds the ids of jobs that are not in have yet, no more than most in all.
func withJobs(have []string, jobs []lifecycle.JobRef, most int) []string {
	have = slices.Clip(have)
	for _, j := range jobs {
		if len(have) < most && !slices.Contains(have, j.ID) {
			have = append(have, j.ID)
		}
	}
	return have
}

// jobsAfter notes the first jobs on a node in the case that it had last.
func (t *tx) jobsAfter(before, after lifecycle.Node) {
	if after.Case != nil || len(after.Jobs) == 0 || slices.Equal(before.Jobs, after.Jobs) {
		return
	}
	k, ok := t.knownCase(t.base.lastCase[after.Name])
	if !ok || k.Closed.IsZero() || len(k.After) >= jobsAfter || t.now.Sub(k.Closed) > jobsAfterFor {
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(after.Jobs), func(j lifecycle.JobRef) bool { return slices.Contains(k.Before, j.ID) })
	if got := withJobs(k.After, fresh, jobsAfter); len(got) > len(k.After) {
		k.After = got
		t.cases[k.ID] = k
	}
}

// keepTimeline stores with a case that has closed what led there: history forgets.
func (t *tx) keepTimeline(id string) {
	k, ok := t.cases[id]
	if !ok || k.Closed.IsZero() || t.env.timeline == nil {
		return
	}
	k.Timeline = t.env.timeline(id)
	for _, h := range t.history {
		if h.Case == id {
			k.Timeline = append(k.Timeline, h)
		}
	}
	if over := len(k.Timeline) - timelineKept; over > 0 {
		k.Timeline = slices.Clone(k.Timeline[over:])
	}
	t.cases[id] = k
}

// wholeTimeline joins what is stored of a case with what history still has.
func wholeTimeline(stored, recent []wire.HistoryEntry) []wire.HistoryEntry {
	all := append(slices.Clone(stored), recent...)
	slices.SortStableFunc(all, func(a, b wire.HistoryEntry) int { return strings.Compare(a.Cursor, b.Cursor) })
	return slices.CompactFunc(all, func(a, b wire.HistoryEntry) bool { return a.Cursor == b.Cursor })
}
