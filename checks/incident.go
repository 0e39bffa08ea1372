package checks

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"
)

// teardown is the XID of a channel that the driver tears down after some other error. It is never a root cause while
// another finding of its incident can be.
const teardown = 45

// GroupIncidents gives findings of one root cause the same Incident and marks all but the root Secondary. The findings
// come back in the order given; what they held in these two fields before does not matter.
//
// Only findings that tell of an event are grouped: Fails, log lines, and a Pass that asks for an action. Of one boot,
// these belong together:
//   - findings on one GPU, or on one switch, each within gap of one before it;
//   - a repeat of the same code on the same part within twice cause, since a hung GPU says so every 45 s;
//   - a lost GPU (XID 79, or a Fail of the checks driver or inventory that asks for a reboot) and what its peers report
//     of it within gap: SXids of switches, NVLink errors of other GPUs;
//   - a link fault of one GPU and what the links of others report of it within gap, where their own lines say that
//     another part may be at fault;
//   - a fault that the driver tells of in words, without saying on which GPU, and an XID of whichever GPU within gap;
//   - what the PCIe path of a GPU reports after the GPU was lost, however late: it stays lost until the next boot;
//   - a teardown (XID 45), on whatever GPU, and the last fault before it within cause, or the one whose code it names.
//
// The root is the finding that decides as Worst does, then the severest action, then the earliest. For XIDs of a GPU on
// which the driver states its own verdict (XID 154, recovery action), that verdict's action counts, not that of their
// text or number. A log line that names another XID as its cause is Secondary even when that one is not among fs, unless it
// is a fault itself: nothing else would ask for what it does. The Incident is the same for the same findings in any order, and
// stays the same when later findings join.
//
// Group what is reported together: a Secondary finding counts for nothing without its root.
func GroupIncidents(fs []Finding, gap, cause time.Duration) []Finding {
	out := slices.Clone(fs)
	var events []int
	for i := range out {
		out[i].Incident, out[i].Secondary = "", false
		if isEvent(out[i]) {
			events = append(events, i)
		}
	}
	slices.SortStableFunc(events, func(a, b int) int { return compareEvents(out[a], out[b]) })
	g := &grouper{fs: out, parent: make([]int, len(out)), gap: gap, cause: cause, alias: aliases(out)}
	for i := range g.parent {
		g.parent[i] = i
	}
	for _, i := range events {
		g.join(i)
	}
	g.mark(events)
	return out
}

// isEvent reports whether f tells of something that happened, rather than of a part that is well or was not read.
func isEvent(f Finding) bool {
	switch f.Verdict {
	case Fail:
		return true
	case Pass:
		return !f.Action.Harmless()
	case NotApplicable:
		return f.Code != 0 || f.Action != None
	}
	return false
}

// compareEvents orders events by boot and time; at one time, in an order that does not depend on how they were given.
func compareEvents(a, b Finding) int {
	if c := cmp.Or(strings.Compare(a.BootID, b.BootID), a.At.Compare(b.At)); c != 0 {
		return c // nearly always: the rest costs more
	}
	return cmp.Or(
		compareRoots(a, b), strings.Compare(a.Check, b.Check), cmp.Compare(a.Code, b.Code), strings.Compare(a.Subject.Key(), b.Subject.Key()),
		strings.Compare(a.Subject.PCI, b.Subject.PCI), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Evidence, b.Evidence), cmp.Compare(a.Cause, b.Cause),
	)
}

// compareRoots puts the finding that is rather the root first, time aside.
func compareRoots(a, b Finding) int {
	rank := func(f Finding) int {
		r := 0
		for _, lesser := range []bool{f.follows(), f.Verdict != Fail, !f.Hard} {
			r *= 2
			if lesser {
				r++
			}
		}
		return r
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Action, a.Action))
}

func (f Finding) isTeardown() bool { return f.Check == "xid" && f.Code == teardown }

// follows reports whether f tells of another fault's consequence, and of no fault itself.
func (f Finding) follows() bool { return f.isTeardown() || f.Cause != 0 && f.Verdict != Fail }

// isVerdict reports whether f is the driver's own verdict on a GPU.
func (f Finding) isVerdict() bool { return f.Check == "recovery" || f.Check == "xid" && f.Code == 154 }

// isLoss reports whether f says that a GPU is gone.
func (f Finding) isLoss() bool {
	switch f.Check {
	case "xid":
		return f.Code == 79
	case "driver", "inventory":
		return f.Verdict == Fail && f.Hard
	}
	return false
}

// isPeerView reports whether f may be how a neighbour sees that a GPU is gone.
func (f Finding) isPeerView() bool {
	switch f.Check {
	case "sxid":
		return true
	case "xid":
		return f.isLink()
	case "inventory":
		return f.Subject.Kind == KindNode && f.Verdict == Fail && f.Hard
	}
	return false
}

// isLink reports whether f is an error of one of a GPU's NVLinks.
func (f Finding) isLink() bool {
	return f.Check == "xid" && (f.Code == 74 || f.Code >= 144 && f.Code <= 150)
}

// aliases gives the UUID of each PCI address that some finding names together with one, by boot: log lines know
// addresses only.
func aliases(fs []Finding) map[string]string {
	out := map[string]string{}
	for _, f := range fs {
		if f.Subject.PCI != "" && f.Subject.GPUUUID != "" {
			k := f.BootID + " " + f.Subject.PCI
			if old, ok := out[k]; !ok || f.Subject.GPUUUID < old {
				out[k] = f.Subject.GPUUUID
			}
		}
	}
	return out
}

type grouper struct {
	fs         []Finding
	parent     []int // union-find over the indices of fs
	gap, cause time.Duration
	alias      map[string]string

	boot     string
	byPart   map[string]int // by part: the last event on it
	byRepeat map[string]int // by part, check and code: the last such event
	byCode   map[string]int // by XID, and by part and XID: the last event with it
	fault    int            // the last Fail that is no teardown; -1 for none
	losses   []int          // losses no older than gap
	views    []int          // peers' views no older than gap
	links    []int          // link faults no older than gap
	peers    []int          // what the links of others report of one, no older than gap
	wordy    int            // the last fault told in words, of no GPU by name; -1 for none
	numbered int            // the last fault told by an XID; -1 for none
	lost     map[string]int // by part: the loss of a GPU
}

// part names the GPU or switch that f is about; MIG instances and links belong to their GPU.
func (g *grouper) part(f Finding) string {
	s := f.Subject
	id := s.GPUUUID
	if id == "" && s.PCI != "" {
		id = s.PCI
		if u, ok := g.alias[f.BootID+" "+s.PCI]; ok {
			id = u
		}
	}
	switch {
	case id == "":
		return string(s.Kind) + " " + f.Check // nothing says that two checks of a whole node share a cause
	case s.Kind == KindSwitch:
		return "switch " + id
	case s.Kind == KindPort:
		return "port " + id
	}
	return id
}

func (g *grouper) join(i int) {
	f := g.fs[i]
	if g.byPart == nil || g.boot != f.BootID {
		g.wordy, g.numbered = -1, -1
		g.boot, g.fault, g.losses, g.views, g.links, g.peers = f.BootID, -1, nil, nil, nil, nil
		g.byPart, g.byRepeat, g.byCode, g.lost = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	}
	part := g.part(f)
	repeat := fmt.Sprintf("%s %s %d", part, f.Check, f.Code)
	if j, ok := g.byPart[part]; ok && g.near(i, j, g.gap) {
		g.union(i, j)
	}
	if j, ok := g.byRepeat[repeat]; ok && g.near(i, j, 2*g.cause) {
		g.union(i, j)
	}
	switch {
	case f.Cause != 0 || f.isTeardown():
		g.joinCause(i)
	case f.Verdict == Fail:
		g.fault = i
	}
	if j, ok := g.lost[part]; ok && f.Check == "aer" {
		g.union(i, j)
	}
	if f.isLoss() {
		g.lost[part] = i
	}
	g.joinLoss(i)
	g.joinLink(i)
	g.joinWords(i)
	g.byPart[part], g.byRepeat[repeat] = i, i
	if f.Check == "xid" && f.Cause == 0 {
		g.byCode[itoa(f.Code)], g.byCode[part+" "+itoa(f.Code)] = i, i
	}
}

// joinCause puts a teardown with the fault it names or, where it names none, with the last fault.
func (g *grouper) joinCause(i int) {
	if c := g.fs[i].Cause; c != 0 {
		for _, k := range []string{g.part(g.fs[i]) + " " + itoa(c), itoa(c)} {
			if j, ok := g.byCode[k]; ok && g.near(i, j, g.cause) {
				g.union(i, j)
				return
			}
		}
		return
	}
	if g.fault >= 0 && g.near(i, g.fault, g.cause) {
		g.union(i, g.fault)
	}
}

// joinLoss puts a lost GPU and what its peers say of it together, whichever came first.
func (g *grouper) joinLoss(i int) {
	recent := func(js []int) []int {
		return slices.DeleteFunc(js, func(j int) bool { return !g.near(i, j, g.gap) })
	}
	g.losses, g.views = recent(g.losses), recent(g.views)
	f := g.fs[i]
	if f.isPeerView() {
		// With two GPUs lost at once the view goes to the first: it is Secondary either way.
		if len(g.losses) > 0 {
			g.union(i, g.losses[0])
		}
		g.views = g.compact(append(g.views, i))
	}
	if f.isLoss() && !f.isPeerView() {
		for _, j := range g.views {
			if g.loss(j) < 0 {
				g.union(i, j)
			}
		}
		g.losses = g.compact(append(g.losses, i))
	}
}

// joinLink puts a link fault and what the links of other GPUs say of it together, whichever came first. A hard fault keeps
// its own incident: its GPU needs its own recovery, whoever began.
func (g *grouper) joinLink(i int) {
	f := g.fs[i]
	if !f.isLink() {
		return
	}
	recent := func(js []int) []int {
		return slices.DeleteFunc(js, func(j int) bool { return !g.near(i, j, g.gap) })
	}
	g.links, g.peers = recent(g.links), recent(g.peers)
	switch {
	case f.Peer && !f.Hard:
		if len(g.links) > 0 {
			g.union(i, g.links[0])
			return
		}
		g.peers = g.compact(append(g.peers, i))
	case f.Verdict == Fail:
		for _, j := range g.peers {
			g.union(i, j)
		}
		g.peers = nil
		g.links = g.compact(append(g.links, i))
	}
}

// joinWords puts what the driver says in words, without a GPU's address, with the XID that it goes with.
func (g *grouper) joinWords(i int) {
	f := g.fs[i]
	with := func(j int) {
		if j >= 0 && g.near(i, j, g.gap) {
			g.union(i, j)
		}
	}
	switch {
	case f.Verdict != Fail:
	case f.Check == "xid" && f.Cause == 0 && !f.isTeardown():
		with(g.wordy)
		g.numbered = i
	case f.Check == "nvrm" && f.Subject.Kind == KindNode:
		with(g.numbered)
		g.wordy = i
	}
}

// loss gives the recent loss that j is already with; -1 for none.
func (g *grouper) loss(j int) int {
	for _, l := range g.losses {
		if g.find(l) == g.find(j) {
			return l
		}
	}
	return -1
}

// compact keeps of each incident only the latest event, so that a flood costs no more than the parts it names.
func (g *grouper) compact(js []int) []int {
	last := js[len(js)-1]
	return append(slices.DeleteFunc(js[:len(js)-1], func(j int) bool { return g.find(j) == g.find(last) }), last)
}

func (g *grouper) near(i, j int, within time.Duration) bool {
	return g.fs[i].At.Sub(g.fs[j].At) <= within
}

func (g *grouper) find(i int) int {
	for g.parent[i] != i {
		g.parent[i] = g.parent[g.parent[i]]
		i = g.parent[i]
	}
	return i
}

func (g *grouper) union(i, j int) { g.parent[g.find(i)] = g.find(j) }

// mark names each incident after its first event and finds its root.
func (g *grouper) mark(events []int) {
	type at struct {
		set  int
		part string
	}
	verdict := map[at]Action{} // the driver's last verdict that is a hard fault
	for _, i := range events { // in order of time
		if f := g.fs[i]; f.isVerdict() && f.HardFault() {
			verdict[at{g.find(i), g.part(f)}] = f.Action
		}
	}
	ruled := func(i int) Finding {
		f := g.fs[i]
		if a, ok := verdict[at{g.find(i), g.part(f)}]; ok && f.Check == "xid" && !f.isVerdict() && f.HardFault() {
			f.Action = a
		}
		return f
	}
	first, root := map[int]int{}, map[int]int{}
	for _, i := range events {
		set := g.find(i)
		if _, ok := first[set]; !ok {
			first[set], root[set] = i, i
			continue
		}
		f, r := ruled(i), ruled(root[set])
		if c := compareRoots(f, r); c < 0 || c == 0 && f.isVerdict() && r.Check == "xid" && !r.isVerdict() {
			root[set] = i
		}
	}
	for _, i := range events {
		set := g.find(i)
		f := &g.fs[i]
		f.Incident = g.name(g.fs[first[set]])
		f.Secondary = i != root[set] || f.Cause != 0 && f.follows()
	}
}

// name makes an incident's id from its first event: boot, part, code and second.
func (g *grouper) name(f Finding) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s %d\n%d", f.BootID, g.part(f), f.Check, f.Code, f.At.Unix()))
	return "I-" + base32.StdEncoding.EncodeToString(sum[:])[:8]
}

// Collapse merges repeats: of findings with the same boot, check, code, subject, verdict, action and incident it keeps
// the first, with Count their number and the parts that they name; it is the incident's root when one of them is. A flood of one line becomes one finding (NVSentinel 1120: 800,000 duplicates of 29).
func Collapse(fs []Finding) []Finding {
	type key struct {
		boot, check, subject, incident string
		code                           int
		verdict                        Verdict
		action                         Action
		hard                           bool
	}
	at := map[key]int{}
	out := make([]Finding, 0, len(fs))
	for _, f := range fs {
		k := key{f.BootID, f.Check, f.Subject.Node + " " + f.Subject.Key(), f.Incident, f.Code, f.Verdict, f.Action, f.Hard}
		n := max(f.Count, 1)
		if i, ok := at[k]; ok {
			out[i].Count = max(out[i].Count, 1) + n
			out[i].Secondary = out[i].Secondary && f.Secondary
			out[i].Also(f)
			continue
		}
		at[k] = len(out)
		out = append(out, f)
	}
	return out
}
