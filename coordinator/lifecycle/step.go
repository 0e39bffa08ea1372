package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// Step applies ev to n and returns the node after it, what to write with it, and what to do outside, in order.
// It does no I/O and reads no clock: events carry their time, in carries policy and guard headroom.
//
// The coordinator fills in what only it can know: a certificate's serial and signature (Granted) and a screen's effect
// id (Recorded). An event that carries no news returns the node as it was, with nothing to write or do; one that makes
// no sense in the node's state returns an *IllegalError.
func Step(n Node, ev Event, in Inputs) (Node, []Write, []Effect, error) {
	sc, ok := ev.(Screened)
	if !ok || n.State == "" || !news(n, sc.Inventory) {
		return stepOne(n, ev, in)
	}
	// The screen saw hardware that nobody has told of yet: that comes first.
	mid, w1, e1, err := stepOne(n, Seen{At: sc.At, Inventory: sc.Inventory}, in)
	if err != nil {
		return n, nil, nil, err
	}
	after, w2, e2, err := stepOne(mid, ev, in)
	if err != nil {
		return n, nil, nil, err
	}
	after.Version = min(after.Version, n.Version+1)
	ws, es := join(w1, w2, e1, e2)
	return after, ws, es, nil
}

func stepOne(n Node, ev Event, in Inputs) (Node, []Write, []Effect, error) {
	if _, retire := ev.(OrderRetire); n.Case == nil && needsCase(n.State) && !retire {
		return n, nil, nil, &IllegalError{Node: n.Name, State: n.State, Event: ev, Why: "its case is missing from the record",
			Do: "retire and enrol it again"}
	}
	s := &step{Node: clone(n), in: in, at: ev.When()}
	if err := s.apply(ev); err != nil {
		return n, nil, nil, err
	}
	s.finish(n.Case)
	if !reflect.DeepEqual(s.Node, n) || len(s.writes)+len(s.effects) > 0 {
		s.Version = n.Version + 1
	}
	return s.Node, s.writes, s.effects, nil
}

func needsCase(st State) bool {
	switch st {
	case Suspect, Withheld, Draining, Quarantined, Remediating, RMA:
		return true
	}
	return false
}

// join makes one step of two: what the second undid of the first is left out.
func join(w1, w2 []Write, e1, e2 []Effect) ([]Write, []Effect) {
	issued := slices.ContainsFunc(w2, func(w Write) bool { _, ok := w.(IssueCertificate); return ok })
	for i, w := range w1 {
		if d, ok := w.(DeleteCertificate); ok && issued {
			w1[i] = Note{fmt.Sprintf("certificate %d ended: %s", d.Serial, d.Reason)}
		}
	}
	if slices.ContainsFunc(e2, func(e Effect) bool { return e.Kind == EffectScreen }) {
		e1 = slices.DeleteFunc(e1, func(e Effect) bool { return e.Kind == EffectScreen })
	}
	return append(w1, w2...), append(e1, e2...)
}

// A step is the node on its way through one event.
type step struct {
	Node
	in Inputs
	at time.Time

	writes   []Write
	effects  []Effect
	findings []checks.Finding // to add to the case
	opened   bool             // the case was opened in this step
	ended    string           // why the certificate ended, when Seen ended it
	rebooted bool             // Seen showed a new boot
	asked    bool             // Screened answers the screen that we asked for
}

func (s *step) write(w Write) { s.writes = append(s.writes, w) }

func (s *step) effect(kind string, args map[string]string) *Effect {
	s.effects = append(s.effects, Effect{Kind: kind, Node: s.Name, Args: args})
	return &s.effects[len(s.effects)-1]
}

// page tells a person. Pages with one key need be sent only once an hour over the whole fleet.
func (s *step) page(reason, key, text string) {
	args := map[string]string{"reason": reason, "text": s.Name + ": " + text, "key": key}
	if s.Case != nil {
		args["case"] = s.Case.ID
	}
	s.effect(EffectPage, args)
}

func (s *step) note(format string, args ...any) { s.write(Note{fmt.Sprintf(format, args...)}) }

// apply runs the rows for any state, then the state's own, then does what has become due.
func (s *step) apply(ev Event) error {
	s.endOverride()
	done, err := s.any(ev)
	if err != nil {
		return err
	}
	if !done {
		if err := s.state(ev); err != nil {
			return err
		}
	}
	s.settle()
	return nil
}

func (s *step) state(ev Event) error {
	switch s.State {
	case Enrolled:
		return s.enrolled(ev)
	case Certified:
		return s.certified(ev)
	case Screening:
		return s.screening(ev)
	case Suspect:
		return s.suspect(ev)
	case Withheld:
		return s.withheld(ev)
	case Draining:
		return s.draining(ev)
	case Quarantined:
		return s.quarantined(ev)
	case Remediating:
		return s.remediating(ev)
	case RMA:
		return s.rma(ev)
	case Retired:
		return s.retired(ev)
	}
	return &IllegalError{Node: s.Name, State: s.State, Event: ev, Why: "no such state"}
}

// enter moves the node to a state and sets the state's deadline.
func (s *step) enter(st State) {
	s.State, s.Since = st, s.at
	s.rearm()
}

// rearm gives the state its full time again.
func (s *step) rearm() {
	l := s.in.Policy.Lifecycle
	d := l.PersonDeadline
	switch s.State {
	case Certified:
		if s.Certificate != nil && s.at.Before(s.Certificate.Expires) {
			s.Deadline = s.Certificate.Expires
			return
		}
	case Screening:
		s.wait(s.screenTime(s.Want))
		return
	case Suspect:
		d = l.RetestWithin
	case Draining:
		d = l.DrainDeadline
	case RMA:
		d = l.RMAQuiet
	case Retired:
		s.Deadline = time.Time{}
		return
	}
	s.wait(d.D())
}

// leastWait is the shortest time that a policy can give a state: no state spins, and what a policy says holds to the second.
const leastWait = time.Second

// wait sets the deadline to d from now, and to leastWait at least.
func (s *step) wait(d time.Duration) { s.Deadline = s.at.Add(max(d, leastWait)) }

// settle does what has become due: a hold's end, a drain that failed, a resume with nothing in its way, a rung, a screen on an idle node.
func (s *step) settle() {
	s.Holds = slices.DeleteFunc(s.Holds, func(h Hold) bool { return !h.Expires.IsZero() && !s.at.Before(h.Expires) })
	if len(s.Holds) == 0 {
		s.Holds = nil
	}
	for m, until := range s.Marks {
		if !until.IsZero() && !s.at.Before(until) {
			s.unmark(m)
		}
	}
	if !s.at.Before(s.ResumeAfter) {
		s.ResumeAfter = time.Time{}
	}
	s.redrainIfDue()
	s.resumeIfDue()
	s.rungIfDue()
	s.rmaIfDue()
	s.screenIfDue()
}

// screenIfDue asks for the wanted screen when the node is idle and answers.
func (s *step) screenIfDue() {
	if s.Want == checks.NoLevel || s.Screen != "" || len(s.Jobs) > 0 || s.Lost {
		return
	}
	args := map[string]string{"level": s.Want.String()}
	if s.Case != nil {
		args["case"] = s.Case.ID
	}
	e := s.effect(EffectScreen, args)
	e.BootID, e.Deadline = s.BootID, s.at.Add(s.screenTime(s.Want))
	s.Screen = ScreenPending
	if s.State == Screening || s.State == Enrolled {
		s.Deadline = e.Deadline
	}
}

// longScreen is how many times ScreenDeadline a soak or an intake screen may take: 10 h where a quick one may take 30 min.
const longScreen = 20

func (s *step) screenTime(level checks.Level) time.Duration {
	d := s.in.Policy.Lifecycle.ScreenDeadline.D()
	if level >= checks.Soak {
		d *= longScreen
	}
	return d
}

func (s *step) mark(m string, until time.Time) {
	if s.Marks == nil {
		s.Marks = map[string]time.Time{}
	}
	s.Marks[m] = until
}

func (s *step) unmark(m string) {
	delete(s.Marks, m)
	if len(s.Marks) == 0 {
		s.Marks = nil
	}
}

func (s *step) marked(m string) bool { return s.Marked(m, s.at) }

// blocked reports whether a resume must wait.
func (s *step) blocked() bool { return s.Lost || len(s.Holds) > 0 }

// foreign reports whether somebody else's drain stands in Slurm.
func (s *step) foreign() bool {
	return slices.ContainsFunc(s.Holds, func(h Hold) bool { return h.Drain })
}

// ScreenPending stands in Node.Screen until the coordinator has given the screen's effect an id.
const ScreenPending = "pending"

// Recorded returns n after effect e has been recorded under id.
func Recorded(n Node, e Effect, id string) Node {
	if e.Kind == EffectScreen && n.Screen == ScreenPending {
		n.Screen = id
	}
	return n
}

// IllegalError says that an event makes no sense in the node's state. Nothing was changed.
type IllegalError struct {
	Node  string
	State State
	Event Event
	Why   string
	Do    string // what to do instead; empty: nothing
}

func (e *IllegalError) Error() string {
	st := string(e.State)
	if st == "" {
		st = "not enrolled"
	}
	what := Name(e.Event)
	if o, ok := e.Event.(OrderCase); ok {
		what = o.Verb + " case " + o.Case
	}
	return fmt.Sprintf("%s on %s, which is %s: %s", what, e.Node, st, e.Why)
}

// Hint says what to do instead.
func (e *IllegalError) Hint() string { return e.Do }

// Status is HTTP's 409, conflict.
func (e *IllegalError) Status() int { return 409 }

func (s *step) illegal(ev Event, why, do string) error {
	return &IllegalError{Node: s.Name, State: s.State, Event: ev, Why: why, Do: do}
}
