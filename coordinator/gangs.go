package coordinator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/commit"
	"github.com/assay-gpu/assay/scheduler/queue"
)

// A hearing is what the nodes of a launch have said. It belongs to the apply loop and stays in memory: the agents say
// everything again to a leader that is new.
type hearing struct {
	words  map[string]commit.Word
	count  [commit.Exited + 1]int // of nodes, by what they said last
	output []wire.RankOutput
	kept   int // bytes of output
}

// outputKept bounds what is kept of one launch's output, in bytes.
const outputKept = 256 << 10

func (l *lead) hearing(id string) *hearing {
	h := l.hearings[id]
	if h == nil {
		h = &hearing{words: map[string]commit.Word{}}
		l.hearings[id] = h
	}
	return h
}

// hear takes in what a node says and reports whether the launch should be looked at at once. A node cannot unsay that it
// has ended.
func (h *hearing) hear(node string, w commit.Word, seats int) bool {
	before := h.words[node]
	if before.Said == commit.Exited || before.Said == commit.Refused && w.Said != commit.Exited || w.Said < before.Said {
		return false
	}
	h.count[before.Said]--
	h.count[w.Said]++
	h.words[node] = w
	switch w.Said {
	case commit.Ready:
		return h.count[commit.Ready] == seats
	case commit.Refused:
		return true
	case commit.Exited:
		return w.Lost || w.Exit != 0 || h.count[commit.Exited]+h.count[commit.Refused] == seats
	}
	return false
}

// GangStatus implements api.Agents.
func (c *Coordinator) GangStatus(ctx context.Context, s wire.GangStatus) error {
	l, err := c.leading()
	if err != nil {
		return err
	}
	return l.do(ctx, func(t *tx) error {
		x, ok := t.launch(s.Launch)
		if _, seated := x.seat[s.Node]; !ok || !seated {
			return &unknownLaunchError{s.Launch, s.Node}
		}
		h := l.hearing(s.Launch)
		w, err := word(s)
		if err != nil {
			return err
		}
		if w.Said == commit.Exited && h.words[s.Node].Said != commit.Exited {
			h.keep(s)
		}
		if h.hear(s.Node, w, len(x.Seats)) {
			return l.step(t, x)
		}
		return nil
	})
}

// word is a status as package commit knows it.
func word(s wire.GangStatus) (commit.Word, error) {
	w := commit.Word{Why: s.Reason, Lost: s.Lost, Serial: s.Serial}
	switch s.Phase {
	case wire.GangReady:
		w.Said = commit.Ready
	case wire.GangRunning:
		w.Said = commit.Running
	case wire.GangRefused:
		w.Said = commit.Refused
	case wire.GangExited:
		w.Said = commit.Exited
	default:
		return w, &invalidError{fmt.Sprintf("launch status %q: no such phase", s.Phase), "phases are ready, refused, running and exited"}
	}
	for _, e := range s.Exits {
		// The rank that failed by itself counts, not those that were ended for it.
		if w.Exit == 0 || w.Exit == ended && e.Code != 0 {
			w.Exit = e.Code
		}
	}
	return w, nil
}

// ended is the exit status of a rank that was ended by SIGTERM.
const ended = 128 + 15

func (h *hearing) keep(s wire.GangStatus) {
	for _, o := range s.Output {
		if h.kept += len(o.Text); h.kept > outputKept {
			return
		}
		o.Node = s.Node
		h.output = append(h.output, o)
	}
}

// stepLaunches looks at every launch: time has passed, or nodes have changed.
func (l *lead) stepLaunches(t *tx) error {
	for _, id := range sortedKeys(t.base.launches) {
		if x, ok := t.launch(id); ok {
			if err := l.step(t, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// step does what follows from what the nodes of a launch have said.
func (l *lead) step(t *tx, x launch) error {
	h := l.hearing(x.ID)
	next, over := commit.Step(x.Launch, commit.View{
		Word: func(node string) commit.Word { return h.words[node] },
		Gone: func(node string) bool {
			n, ok := t.node(node)
			return !ok || n.Lost || n.State == lifecycle.Retired
		},
		Hold: func(s commit.Seat) (bool, string) { return holds(t, s) },
	}, t.now)
	if next.Phase == x.Phase && !over {
		return nil
	}
	j, ok := t.job(x.Job)
	if !ok {
		return fmt.Errorf("launch %s: job %d is not known", x.ID, x.Job)
	}
	said := x.Phase
	x.Launch = next
	switch {
	case over:
		t.dropLaunch(x)
		j.State, j.Ending = jobEnding, endOfLaunch(next, t.now)
		if len(h.output) > 0 {
			slices.SortFunc(h.output, func(a, b wire.RankOutput) int { return a.Rank - b.Rank })
			t.logs[j.ID] = wire.JobLogs{Job: j.ID, Launch: x.ID, Ranks: h.output}
		}
	case next.Phase == commit.Going:
		t.setLaunch(x)
		j.State, j.Started = jobRunning, t.now
	default:
		t.setLaunch(x)
		j.State = jobEnding
	}
	if next.Why != "" {
		j.Reason = next.Why
	}
	t.setJob(j)
	text := fmt.Sprintf("gang %s %s", x.ID, next.Phase)
	if over {
		text = fmt.Sprintf("gang %s over %s", x.ID, next.Outcome)
	}
	e := wire.HistoryEntry{Event: text, From: string(said), To: string(next.Phase), By: "assay", Detail: []string{"on " + x.list}}
	if next.Why != "" && said != commit.Ending {
		e.Detail = append(e.Detail, next.Why)
	}
	t.record(e)
	return nil
}

// holds reports whether the certificate that a seat was placed on still holds on a node that is well: what the second
// transaction of a launch asks before GO.
func holds(t *tx, s commit.Seat) (bool, string) {
	n, ok := t.node(s.Node)
	switch {
	case !ok || n.Certificate == nil:
		return false, "it holds none"
	case n.Certificate.Serial != s.Serial:
		return false, fmt.Sprintf("it holds %d, not %d", n.Certificate.Serial, s.Serial)
	case n.Suspended:
		return false, "it is suspended"
	case !certificate.Holds(*n.Certificate, t.now):
		return false, "it has expired"
	}
	if why := barred(n, t.now); why != "" {
		return false, why
	}
	return true, ""
}

// endOfLaunch is how a launch ended, in the words of the queue.
func endOfLaunch(l commit.Launch, now time.Time) *queue.Ending {
	e := queue.Ending{Exit: l.Exit, Node: l.Blame, At: now.Unix()}
	switch l.Outcome {
	case commit.Completed:
		e.State = queue.Completed
	case commit.Timeout:
		e.State = queue.Timeout
	case commit.Cancelled:
		e.State = queue.Cancelled
	case commit.Requeued:
		e.State, e.Again = queue.Cancelled, true
	case commit.NodeFail:
		e.State = queue.NodeFail
	case commit.Unstarted:
		e.State, e.Launch = queue.NodeFail, true
	default:
		e.State = queue.Failed
	}
	return &e
}

type unknownLaunchError struct{ launch, node string }

func (e *unknownLaunchError) Error() string {
	return fmt.Sprintf("launch %.40q: not under way on %s", e.launch, e.node)
}

// Status is the HTTP status of the refusal.
func (e *unknownLaunchError) Status() int { return 404 }
