package commit

import (
	"fmt"
	"time"
)

// A View is what Step needs beside the launch: what its nodes said, and how they are.
type View struct {
	Word func(node string) Word
	Gone func(node string) bool             // lost, rebooted, or no longer assay's
	Hold func(s Seat) (ok bool, why string) // whether the certificate that the seat was placed on still holds
}

// Step is l at t, after what its nodes said. over reports that nothing of it is left: its nodes are free, and Outcome says
// what became of the job. The same launch and view give the same answer, so that it may be asked as often as one likes.
func Step(l Launch, v View, t time.Time) (next Launch, over bool) {
	switch l.Phase {
	case Reserved:
		return stepReserved(l, v, t), false
	case Going:
		return stepGoing(l, v, t)
	case Ending:
		return l, allOut(l, v, t)
	}
	return l, false
}

// stepReserved waits for every node to be ready. GO is given only while each certificate that the plan was made on holds:
// the launch as it returns is what the second transaction writes.
func stepReserved(l Launch, v View, t time.Time) Launch {
	waiting := ""
	for _, s := range l.Seats {
		w := v.Word(s.Node)
		switch {
		case v.Gone(s.Node):
			return l.end(Unstarted, s.Node, s.Node+" went away before the start", 0, t)
		case w.Said == Refused:
			return l.end(Unstarted, s.Node, s.Node+" failed its check at the barrier: "+w.Why, 0, t)
		case w.Said == Exited:
			return l.end(Unstarted, s.Node, s.Node+" dropped the reservation: "+w.Why, 0, t)
		case w.Said != Ready && waiting == "":
			waiting = s.Node
		}
	}
	if waiting != "" {
		if t.Sub(l.Reserved) > ReadyWithin {
			return l.end(Unstarted, waiting, fmt.Sprintf("%s was not ready within %s", waiting, ReadyWithin), 0, t)
		}
		return l
	}
	for _, s := range l.Seats {
		if ok, why := v.Hold(s); !ok {
			return l.end(Unstarted, "", s.Node+" lost its certificate before the start: "+why, 0, t)
		}
		if w := v.Word(s.Node); w.Serial != s.Serial {
			return l.end(Unstarted, "", fmt.Sprintf("%s was ready on certificate %d, but was placed on %d", s.Node, w.Serial, s.Serial), 0, t)
		}
	}
	l.Phase, l.Went = Going, t
	return l
}

// stepGoing waits for every rank to end, and ends them all when one fails.
func stepGoing(l Launch, v View, t time.Time) (Launch, bool) {
	running := false
	for _, s := range l.Seats {
		w := v.Word(s.Node)
		switch {
		case w.Said == Exited && w.Lost:
			return l.end(NodeFail, s.Node, s.Node+": "+w.Why, w.Exit, t), false
		case w.Said == Exited && w.Exit != 0:
			return l.end(Failed, "", fmt.Sprintf("a rank on %s ended with %s", s.Node, exitText(w.Exit)), w.Exit, t), false
		case w.Said == Exited:
			continue
		case v.Gone(s.Node):
			return l.end(NodeFail, s.Node, s.Node+" went away while the job ran", 0, t), false
		case w.Said == Refused:
			return l.end(NodeFail, s.Node, s.Node+" did not start its ranks: "+w.Why, 0, t), false
		case w.Said != Running && t.Sub(l.Went) > ConfirmWithin:
			return l.end(NodeFail, s.Node, fmt.Sprintf("%s did not say within %s that its ranks run", s.Node, ConfirmWithin), 0, t), false
		}
		running = true
	}
	if !running {
		l = l.end(Completed, "", "", 0, t)
		return l, true
	}
	if l.Limit > 0 && t.Sub(l.Went) > l.Limit {
		return l.end(Timeout, "", fmt.Sprintf("its limit of %s is over", l.Limit), 0, t), false
	}
	return l, false
}

// allOut reports whether nothing of an ending launch is left on any node that can still say so.
func allOut(l Launch, v View, t time.Time) bool {
	for _, s := range l.Seats {
		if w := v.Word(s.Node); w.Said == Exited || w.Said == Refused {
			continue
		}
		if v.Gone(s.Node) || t.Sub(l.Ended) > GoneWithin {
			continue
		}
		return false
	}
	return true
}

// exitText says an exit status as people know it.
func exitText(code int) string {
	if code > 128 {
		return fmt.Sprintf("signal %d", code-128)
	}
	return fmt.Sprintf("exit status %d", code)
}
