// Package inventory judges whether a node shows the GPUs it should: as many, and the same ones, as were accepted at
// enrolment or after a repair, and what policy names.
//
// A GPU that the driver no longer counts is a hard fault: a rescan of the bus seldom brings it back, a reboot often
// does, so reboot is asked for. A GPU of another identity in its place is work for a person: someone swapped a part.
// A driver of another version ends the certificate by itself and is a fault only where policy names a version.
// Sources: nvmlDeviceGetCount_v2, nvmlDeviceGetUUID; leptonai/gpud "GPU count" (mismatch: reboot, then inspection).
package inventory

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// ID is the check's catalog id.
const ID = "inventory"

// A Reading is what the driver shows of a node's hardware.
type Reading struct {
	Count  int          // devices the driver counts, those it cannot open included; below 0 when it could not be asked
	GPUs   []checks.GPU // the devices that could be named
	Driver string       // kernel driver version; empty when unread
}

// Judge compares r with the hardware accepted before, nil when there is none, and with policy. It gives one Pass for the
// node, or a finding for each fault. It does no I/O.
func Judge(node string, r Reading, expected *checks.Inventory, p policy.Inventory) []checks.Finding {
	j := &judge{node: node, r: r, policy: p}
	if r.Count < 0 {
		return []checks.Finding{j.finding(nil, checks.Unknown, checks.None, "the driver did not say how many GPUs it counts")}
	}
	j.compare(expected)
	j.judgeCount()
	j.judgeGone()
	j.judgeNames()
	j.judgeDriver()
	if len(j.out) > 0 {
		return j.out
	}
	return []checks.Finding{j.whole(expected)}
}

type judge struct {
	node   string
	r      Reading
	policy policy.Inventory
	want   int          // GPUs the node should have; 0: nothing says how many
	gone   []checks.GPU // accepted before, not named now
	new    []checks.GPU // named now, not accepted before; empty when nothing was accepted
	out    []checks.Finding
}

func (j *judge) compare(expected *checks.Inventory) {
	if expected != nil {
		j.want = len(expected.GPUs)
		j.gone = without(expected.GPUs, j.r.GPUs)
		if j.want > 0 {
			j.new = without(j.r.GPUs, expected.GPUs)
		}
	}
	if j.policy.Count > 0 {
		j.want = j.policy.Count
	}
}

// without gives the GPUs of a whose UUID is not in b.
func without(a, b []checks.GPU) []checks.GPU {
	seen := make(map[string]bool, len(b))
	for _, g := range b {
		seen[g.UUID] = true
	}
	var out []checks.GPU
	for _, g := range a {
		if !seen[g.UUID] {
			out = append(out, g)
		}
	}
	return out
}

// judgeCount reports a wrong count that no single GPU explains.
func (j *judge) judgeCount() {
	swapped := min(len(j.gone), len(j.new))
	switch missing := j.want - j.r.Count; {
	case missing > 0 && len(j.gone)-swapped == 0:
		j.hard(nil, "the driver counts %d GPUs of %d", j.r.Count, j.want)
	case missing < 0 && j.want > 0:
		j.soft(nil, checks.FixConfig, "the driver counts %d GPUs, %d more than the node should have", j.r.Count, -missing)
	}
}

// judgeGone reports each GPU that was there before and is not named now.
func (j *judge) judgeGone() {
	news := append([]checks.GPU(nil), j.new...)
	unnamed := j.r.Count - len(j.r.GPUs) // counted, but could not be opened
	for _, g := range j.gone {
		if s, ok := take(&news, g); ok {
			j.soft(&s, checks.FixConfig, "GPU %s stands where GPU %s was accepted; accept the new part or put the old one back", s.UUID, g.UUID)
			continue
		}
		switch {
		case j.r.Count < j.want:
			j.hard(&g, "GPU %d at %s is missing: the driver counts %d of %d", g.Index, g.PCI, j.r.Count, j.want)
		case unnamed > 0:
			unnamed--
			j.out = append(j.out, j.finding(&g, checks.Unknown, checks.None, "GPU %d at %s is counted but could not be named", g.Index, g.PCI))
		default:
			j.soft(&g, checks.FixConfig, "GPU %d at %s was accepted before and is gone, though the count is what policy wants", g.Index, g.PCI)
		}
	}
}

// take removes from news the GPU that stands in the place of old: the one at the same address or, as addresses move
// when a part is changed, any.
func take(news *[]checks.GPU, old checks.GPU) (checks.GPU, bool) {
	if len(*news) == 0 {
		return checks.GPU{}, false
	}
	at := 0
	for i, g := range *news {
		if g.PCI == old.PCI {
			at = i
			break
		}
	}
	g := (*news)[at]
	*news = append((*news)[:at:at], (*news)[at+1:]...)
	return g, true
}

func (j *judge) judgeNames() {
	if j.policy.Name == "" {
		return
	}
	for _, g := range j.r.GPUs {
		if g.Name != j.policy.Name {
			j.soft(&g, checks.FixConfig, "product %q, policy wants %q", g.Name, j.policy.Name)
		}
	}
}

func (j *judge) judgeDriver() {
	switch {
	case j.policy.Driver == "" || j.r.Driver == j.policy.Driver:
	case j.r.Driver == "":
		j.out = append(j.out, j.finding(nil, checks.Unknown, checks.None, "the driver did not say its version; policy wants %s", j.policy.Driver))
	default:
		j.soft(nil, checks.FixConfig, "driver %s, policy wants %s", j.r.Driver, j.policy.Driver)
	}
}

// whole is the one finding of a node without a fault.
func (j *judge) whole(expected *checks.Inventory) checks.Finding {
	switch {
	case j.r.Count == 0 && j.want == 0:
		return j.finding(nil, checks.Unknown, checks.None, "the driver counts no GPU, and nothing says how many there should be")
	case j.r.Count > len(j.r.GPUs):
		return j.finding(nil, checks.Unknown, checks.None, "%d of %d GPUs could not be named", j.r.Count-len(j.r.GPUs), j.r.Count)
	case expected == nil || len(expected.GPUs) == 0:
		return j.finding(nil, checks.Pass, checks.None, "%d GPUs; none accepted before to compare them with", j.r.Count)
	default:
		return j.finding(nil, checks.Pass, checks.None, "%d GPUs, the ones accepted before", j.r.Count)
	}
}

func (j *judge) hard(g *checks.GPU, format string, args ...any) {
	f := j.finding(g, checks.Fail, checks.Reboot, format, args...)
	f.Hard = true
	j.out = append(j.out, f)
}

func (j *judge) soft(g *checks.GPU, a checks.Action, format string, args ...any) {
	j.out = append(j.out, j.finding(g, checks.Fail, a, format, args...))
}

// finding is about g or, when g is nil, about the node. What the driver counts stands in the evidence.
func (j *judge) finding(g *checks.GPU, v checks.Verdict, a checks.Action, format string, args ...any) checks.Finding {
	f := checks.Finding{
		Check: ID, Subject: checks.Subject{Kind: checks.KindNode, Node: j.node}, Verdict: v, Action: a,
		Reason: fmt.Sprintf(format, args...),
	}
	if g != nil {
		f.Subject = g.Subject()
		f.Subject.Node = j.node
	}
	uuids := make([]string, 0, len(j.r.GPUs))
	for _, n := range j.r.GPUs {
		uuids = append(uuids, n.UUID)
	}
	f.Evidence = fmt.Sprintf("count=%d driver=%s uuids=%s", j.r.Count, j.r.Driver, strings.Join(uuids, ","))
	return f
}
