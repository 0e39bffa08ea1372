package agent

import (
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// Resend times: a fault that repeats is told again after a minute, then at doubling intervals up to the last.
const (
	resendFirst = time.Minute
	resendMost  = 10 * time.Minute
)

// maxLedger bounds how many different findings are remembered: the kernel log can name any number of devices.
const maxLedger = 4096

// A Ledger tells a new finding from one that repeats: same subject, check and code in the same boot. It holds one boot's
// findings; a new boot starts a new ledger. The zero value is not ready: use NewLedger.
type Ledger struct {
	entries map[ledgerKey]*ledgerEntry
}

type ledgerKey struct {
	subject, check string
	code           int
}

type ledgerEntry struct {
	finding checks.Finding
	count   int           // times seen in this boot
	last    time.Duration // boot clock when last seen
	sent    time.Duration // boot clock when last told; counts only when told is set
	told    bool
	wait    time.Duration // until it may be told again
	cycle   bool          // seen in a snapshot: it ends when a later snapshot does not show it
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{entries: map[ledgerKey]*ledgerEntry{}} }

func keyOf(f checks.Finding) ledgerKey { return ledgerKey{f.Subject.Key(), f.Check, f.Code} }

// See notes the finding and reports how often it has been seen and whether it is due to be told now: the first time, and
// then not more than once a minute, ever more seldom. What is due counts as told.
func (l *Ledger) See(f checks.Finding, now time.Duration) (count int, due bool) {
	return l.note(f, now, 1)
}

// Amend notes what is known better of a finding that has been seen: it counts no more than before.
func (l *Ledger) Amend(f checks.Finding, now time.Duration) (count int, due bool) {
	if l.entries[keyOf(f)] == nil {
		return l.See(f, now)
	}
	return l.note(f, now, 0)
}

func (l *Ledger) note(f checks.Finding, now time.Duration, times int) (count int, due bool) {
	k := keyOf(f)
	e := l.entries[k]
	if e == nil {
		l.bound()
		e = &ledgerEntry{wait: resendFirst}
		l.entries[k] = e
	}
	// A finding that has become worse is news, whatever was told before.
	worse := e.told && (f.HardFault() && !e.finding.HardFault() || f.Verdict == checks.Fail && e.finding.Verdict != checks.Fail || f.Action > e.finding.Action)
	e.finding, e.last = f, now
	e.count += times
	switch {
	case !e.told || worse:
		e.wait = resendFirst
	case now-e.sent < e.wait:
		return e.count, false
	default:
		e.wait = min(2*e.wait, resendMost)
	}
	e.told, e.sent = true, now
	return e.count, true
}

// Cycle notes a snapshot's findings, forgets those of earlier snapshots that this one no longer shows, and returns those
// that are due to be told, with their counts.
func (l *Ledger) Cycle(fs []checks.Finding, now time.Duration) (due []checks.Finding) {
	shown := map[ledgerKey]bool{}
	for _, f := range fs {
		k := keyOf(f)
		shown[k] = true
		if n, tell := l.See(f, now); tell {
			f.Count = max(f.Count, n)
			due = append(due, f)
		}
		l.entries[k].cycle = true
	}
	for k, e := range l.entries {
		if e.cycle && !shown[k] && now-e.sent >= resendFirst {
			delete(l.entries, k)
		}
	}
	return due
}

// Renew makes every fault due again, as when a new policy may act on what was only observed before.
func (l *Ledger) Renew() {
	for _, e := range l.entries {
		e.told = false
	}
}

// Faults returns the remembered findings that are faults, oldest first by the time they were last seen.
func (l *Ledger) Faults() []checks.Finding {
	var es []*ledgerEntry
	for _, e := range l.entries {
		if e.finding.Verdict == checks.Fail {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(a, b *ledgerEntry) int { return int(a.last - b.last) })
	fs := make([]checks.Finding, len(es))
	for i, e := range es {
		fs[i] = e.finding
		fs[i].Count = e.count
	}
	return fs
}

// bound forgets what was seen longest ago when the ledger is full; a fault goes after all that is none.
func (l *Ledger) bound() {
	if len(l.entries) < maxLedger {
		return
	}
	var oldest ledgerKey
	var found *ledgerEntry
	for k, e := range l.entries {
		if found == nil || less(e, found) {
			oldest, found = k, e
		}
	}
	delete(l.entries, oldest)
}

func less(a, b *ledgerEntry) bool {
	af, bf := a.finding.Verdict == checks.Fail, b.finding.Verdict == checks.Fail
	if af != bf {
		return bf
	}
	return a.last < b.last
}
