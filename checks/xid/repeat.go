package xid

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// Repeats remembers engine exceptions (13) and page faults (31), which are a job's own by default, for what tells a part
// that is at fault: the same TPC, or the same GPU, under one process after the other, while other GPUs are quiet. The same
// on several GPUs is the job's. The zero value remembers nothing.
type Repeats struct {
	seen   map[repeatKey][]occurrence
	oldest time.Time // no occurrence is older: before this one is forgotten, none is
}

type repeatKey struct {
	gpu  string
	code int
}

// An occurrence is all that one process said: its lines come together.
type occurrence struct {
	at  time.Time // of its last line
	pid int       // 0: not known
	tpc string    // for 13; severalTPCs when it named more than one, as a job's own error does
}

const (
	severalTPCs = "*"
	// oneProcess is how far apart lines may be that one process wrote, where the driver does not say which it was.
	oneProcess = 10 * time.Minute
	maxRepeats = 256 // occurrences of one kind on one GPU
	maxParts   = 64  // GPUs and kinds
)

// See takes in an event and gives how many processes, this one included, had it on the same part within the policy's
// window, and which part that is; 0 for an event of another kind, and where other GPUs show the same.
func (r *Repeats) See(e Event, at time.Time, p policy.XID) (n int, part string) {
	tpc := ""
	switch {
	case e.Switch || e.PCI == "":
		return 0, ""
	case e.Code == 13:
		if tpc = tpcOf(e.Text); tpc == "" {
			return 0, ""
		}
	case e.Code != 31:
		return 0, ""
	}
	if r.seen == nil || len(r.seen) > maxParts {
		r.seen = map[repeatKey][]occurrence{}
	}
	r.forget(at, p)
	key := repeatKey{e.PCI, e.Code}
	os := r.seen[key]
	i := slices.IndexFunc(os, func(o occurrence) bool {
		return o.pid == e.PID && (e.PID != 0 || at.Sub(o.at).Abs() <= oneProcess)
	})
	switch {
	case i < 0 && len(os) < maxRepeats:
		os = append(os, occurrence{at, e.PID, tpc})
	case i >= 0:
		os[i].at = at
		if os[i].tpc != tpc {
			os[i].tpc = severalTPCs
		}
	}
	r.seen[key] = os
	if r.oldest.IsZero() || at.Before(r.oldest) {
		r.oldest = at
	}
	for k := range r.seen {
		if k.code == e.Code && k.gpu != e.PCI {
			return 0, ""
		}
	}
	for _, o := range os {
		if o.tpc == tpc {
			n++
		}
	}
	if 2*n <= len(os) {
		return 0, "" // most processes had it elsewhere on this GPU
	}
	return n, tpc
}

// forget drops what is out of the window. It looks at nothing while nothing can be: a storm is as cheap as its lines.
func (r *Repeats) forget(at time.Time, p policy.XID) {
	out := func(t time.Time) bool { return policy.Duration(at.Sub(t)) > p.RepeatWindow }
	if !out(r.oldest) {
		return
	}
	r.oldest = time.Time{}
	for k, os := range r.seen {
		if os = slices.DeleteFunc(os, func(o occurrence) bool { return out(o.at) }); len(os) == 0 {
			delete(r.seen, k)
			continue
		}
		r.seen[k] = os
		for _, o := range os {
			if r.oldest.IsZero() || o.at.Before(r.oldest) {
				r.oldest = o.at
			}
		}
	}
}

// Suspect makes a soft Fail of a finding on an event that n processes had on one part, when those are more than the policy
// allows. A site's own action for the code stands.
func Suspect(f checks.Finding, n int, part string, p policy.XID) checks.Finding {
	limit := p.SameGPU
	if part != "" {
		limit = p.SameTPC
	}
	if _, own := p.Actions[f.Code]; own || n <= limit {
		return f
	}
	f.Verdict, f.Action, f.Hard = checks.Fail, checks.Drain, false
	where := "this GPU"
	if part != "" {
		where = part
	}
	f.Reason += fmt.Sprintf(": %d processes within %s on %s and on no other GPU, more than %d: not the job's fault, it seems", n, p.RepeatWindow, where, limit)
	return f
}

// tpcOf reads "GPC 7, TPC 7" out of "… on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter".
func tpcOf(text string) string {
	_, s, ok := strings.Cut(text, "(GPC ")
	gpc, s, ok2 := strings.Cut(s, ", TPC ")
	n := leadingDigits(s)
	if !ok || !ok2 || leadingDigits(gpc) != len(gpc) || gpc == "" || n == 0 {
		return ""
	}
	return "GPC " + gpc + ", TPC " + s[:n]
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
