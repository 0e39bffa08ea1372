package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/checks/nic"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// Bounds of a LogFold: how many findings it keeps apart, how many messages it knows by heart.
const (
	maxFold = 1 << 16
	maxMemo = 1 << 12
	maxPath = 1 << 6 // lines on PCIe errors judged in one go
)

// A LogFold judges a log of any length in bounded memory. Repeats are counted as they come: of a finding that repeats it
// keeps the first and the last of every stretch no longer than an incident's gap, so that what is near a flood's line in
// time is grouped as it would be with all of them.
type LogFold struct {
	Left int // findings that were left out, since there were too many different ones; then nothing is sure

	log    Log
	known  checks.Inventory
	policy policy.Policy
	kept   []checks.Finding
	open   map[foldKey]stretch
	memo   [2]map[string]remembered // by a message's words, whole ones apart
	path   []LogEvent               // lines on one PCIe error that are not judged yet: more may follow
}

// A foldKey tells findings apart that are not each other's repeats.
type foldKey struct {
	boot, check, subject string
	code, cause          int
	verdict              checks.Verdict
	action               checks.Action
	hard, peer, back     bool
}

// A stretch is where a finding's repeats of the last gap are kept; last is -1 while there is only one.
type stretch struct{ first, last int }

// A remembered message needs no second reading: what it gives depends on nothing but its words.
type remembered struct {
	finding checks.Finding
	key     foldKey
	gives   bool
}

// NewLogFold begins a log of known hardware, which may be empty, under a policy.
func NewLogFold(known checks.Inventory, tree aer.Tree, p policy.Policy) *LogFold {
	return &LogFold{log: Log{Tree: tree}, known: known, policy: p, open: map[foldKey]stretch{}, memo: [2]map[string]remembered{{}, {}}}
}

// Add takes in one message and reports whether it says anything of ours. boot is the message's boot id, empty when it is
// not known; whole says that the message is one of the kernel's from its beginning to its end.
func (l *LogFold) Add(message []byte, whole bool, at time.Time, boot string) bool {
	memo, events := l.memo[0], kernlog.Events
	if whole {
		memo, events = l.memo[1], kernlog.Message
	}
	if m, ok := memo[string(message)]; ok {
		if m.gives {
			l.flush()
			f, key := m.finding, m.key
			f.At, f.BootID, key.boot = at, boot, boot
			l.fold(f, key)
		}
		return true
	}
	line := string(message)
	n := 0
	var m remembered
	keeps := false
	for e := range events(line) {
		n++
		m, keeps = l.take(LogEvent{Event: e, At: at, Boot: boot})
	}
	if n == 1 && keeps {
		if len(memo) >= maxMemo {
			clear(memo)
		}
		memo[line] = m
	}
	return n > 0
}

// take judges one event, and gives what to remember of its words; false when they say different things at other times.
func (l *LogFold) take(ev LogEvent) (remembered, bool) {
	if _, ok := ev.Event.(aer.Event); ok {
		if l.path = append(l.path, ev); len(l.path) >= maxPath {
			l.flush()
		}
		return remembered{}, false
	}
	l.flush()
	fs := l.judge([]LogEvent{ev})
	m := remembered{gives: len(fs) == 1}
	if m.gives {
		m.finding, m.key = fs[0], keyOf(fs[0])
	}
	return m, byItsWords(ev.Event) && len(fs) <= 1
}

// judge judges events and counts what they give.
func (l *LogFold) judge(events []LogEvent) []checks.Finding {
	fs := l.log.Judge(events, l.known, l.policy)
	for _, f := range fs {
		l.fold(f, keyOf(f))
	}
	return fs
}

func (l *LogFold) flush() {
	if len(l.path) > 0 {
		l.judge(l.path)
		l.path = l.path[:0]
	}
}

// byItsWords reports whether an event means the same whatever else the log says.
func byItsWords(e kernlog.Event) bool {
	switch e := e.(type) {
	case xid.Event:
		return !e.Prose && e.Code != xid.FellOffBus && e.Code != 13 && e.Code != 31 // how often those came counts
	case nic.Event, hostlog.Event:
		return true
	}
	return false
}

func keyOf(f checks.Finding) foldKey {
	return foldKey{f.BootID, f.Check, f.Subject.Key(), f.Code, f.Cause, f.Verdict, f.Action, f.Hard, f.Peer, f.Back}
}

// fold counts a finding.
func (l *LogFold) fold(f checks.Finding, key foldKey) {
	f.Count = max(f.Count, 1)
	s, ok := l.open[key]
	if ok {
		since := f.At.Sub(l.kept[s.first].At)
		if since >= 0 && since <= l.policy.Agent.IncidentGap.D() || len(l.kept) >= maxFold {
			if s.last >= 0 {
				l.kept[s.first].Count += f.Count
				l.kept[s.first].Also(f)
				l.kept[s.last].At = f.At
			} else if len(l.kept) < maxFold {
				s.last = len(l.kept)
				l.kept = append(l.kept, f)
				l.open[key] = s
			} else {
				l.kept[s.first].Count += f.Count
				l.kept[s.first].Also(f)
			}
			return
		}
	}
	if len(l.kept) >= maxFold {
		l.Left += f.Count
		return
	}
	l.open[key] = stretch{len(l.kept), -1}
	l.kept = append(l.kept, f)
}

// Findings gives what the log says, each finding once with its count, grouped into incidents, in the order of the log. past
// tells of which boots the log says that they are over.
func (l *LogFold) Findings(past func(boot string) bool) []checks.Finding {
	l.flush()
	fs := ofEarlierBoots(TakeBack(append([]checks.Finding(nil), l.kept...)), past)
	return checks.Collapse(checks.GroupIncidents(fs, l.policy.Agent.IncidentGap.D(), l.policy.Agent.IncidentCause.D()))
}
