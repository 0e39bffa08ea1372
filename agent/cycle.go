package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
)

// endCycle takes in a background snapshot. It runs in the loop.
func (a *Agent) endCycle(snap catalog.Snapshot, err error) {
	now := a.cfg.Clock()
	a.cycleEnd = now
	aside, open := a.knownAside()
	res := a.judge(checks.Quick, snap, err, a.kernel.Open, aside)
	a.takeIn(res)
	a.saveKernel()
	a.saveContact()

	// What the kernel log said was told as it came.
	seen := slices.DeleteFunc(notable(res.Findings), func(f checks.Finding) bool { return ofKernel(f) && f.Verdict == checks.Fail })
	due := a.group(a.ledger.Cycle(append(seen, open...), now))
	a.burySafely(due)
	a.tellCycle(res, due)
}

// judge judges a snapshot at a level. kernel are the kernel-log faults that count for it, aside what was found beside it. It
// runs in the loop.
func (a *Agent) judge(level checks.Level, snap catalog.Snapshot, err error, kernel, aside []checks.Finding) SuiteResult {
	if h := policy.HardwareOf(snap.Inventory(), a.expected()); h.SKU != "" && h != a.resolvedFor {
		a.resolve(h) // before it is judged: a first look has no other way to know
	}
	in := SuiteInput{Level: level, Snapshot: snap, Kernel: kernel, Aside: aside, KernelOK: a.state().kernelDoubt(), Expected: a.expected(), Policy: *a.policy.Load()}
	if err != nil {
		in.Err = err.Error()
		in.Snapshot.Node, in.Snapshot.BootID = a.cfg.Node, a.bootID
	}
	if in.Snapshot.At.IsZero() {
		in.Snapshot.At = time.Now()
	}
	return Judge(in)
}

// expected is the hardware to compare with: what was seen at enrolment, else nothing.
func (a *Agent) expected() *checks.Inventory {
	if a.known {
		return a.desired.Expected
	}
	return nil
}

// takeIn remembers a suite's snapshot as the last one. It runs in the loop.
func (a *Agent) takeIn(res SuiteResult) {
	// What the kernel log says stands for itself: in the tombstone, and in how far it has been read.
	read := slices.DeleteFunc(slices.Clone(res.Findings), ofKernel)
	act, _ := Acting(*a.policy.Load(), read)
	seen := &Seen{At: a.cfg.Clock(), Clean: true}
	if v := checks.FoldFindings(act); v != checks.Pass && len(act) > 0 || checks.FoldFindings(read) == checks.Unknown {
		seen.Clean, seen.Why = false, worstOf(act, read)
	}
	a.seen = seen
	a.lastFound = res.Findings
	a.stats.judged(res.Findings)
	if res.Err != "" {
		return
	}
	snap := res.Snapshot
	a.last = &snap
	if inv := snap.Inventory(); len(inv.GPUs) > 0 && inventoryText(inv) != inventoryText(a.inventory) {
		a.inventory = inv
		_ = a.store.save("seen.json", inv) // logged there; it is read anew each cycle
	}
}

func worstOf(act, all []checks.Finding) string {
	if f, bad := checks.Worst(act); bad {
		return describe(f)
	}
	return unknowns(all)
}

// hardware is what the node shows and should show, as far as it decides which policy holds.
func (a *Agent) hardware() policy.Hardware { return policy.HardwareOf(a.inventory, a.expected()) }

// inventoryText is the hardware as one string, to tell whether it changed.
func inventoryText(inv checks.Inventory) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", inv.BootID, inv.Driver, inv.NodeSerial)
	for _, g := range inv.GPUs {
		fmt.Fprintf(&b, "\n%d %s %s %s %s", g.Index, g.UUID, g.PCI, g.Serial, g.Name)
	}
	return b.String()
}

// notable leaves out what says nothing: passes that ask for nothing, and checks that do not apply.
func notable(fs []checks.Finding) []checks.Finding {
	var out []checks.Finding
	for _, f := range fs {
		if f.Verdict == checks.Fail || f.Verdict == checks.Unknown || f.Action != checks.None {
			out = append(out, f)
		}
	}
	return out
}

// group gives new faults and log lines among fs their incident, looking at those that came shortly before as well.
func (a *Agent) group(fs []checks.Finding) []checks.Finding {
	var at []int
	var events []checks.Finding
	for i, f := range fs {
		if f.Verdict == checks.Fail || f.Code != 0 {
			at, events = append(at, i), append(events, f)
		}
	}
	for i, f := range a.window.Add(events) {
		fs[at[i]] = f
	}
	return fs
}

// tellCycle reports a cycle: faults that are due at once, or else a routine report with what happened since the last.
// A cycle whose faults have all been told lately, on hardware that has not changed, is told by the heartbeat alone.
func (a *Agent) tellCycle(res SuiteResult, due []checks.Finding) {
	inv := inventoryText(a.inventory)
	if res.Verdict == checks.Fail && len(due) == 0 && len(a.events) == 0 && inv == a.sentInv {
		return
	}
	a.sentInv = inv
	r := a.report(checks.WhyBackground, res, due)
	r.Findings = append(a.events, r.Findings...)
	a.events = nil
	a.put(r)
}

// report makes a report of a suite's result that tells the findings fs. It runs in the loop.
func (a *Agent) report(why checks.Why, res SuiteResult, fs []checks.Finding) checks.Report {
	r := checks.Report{
		ID: newID(), Node: a.cfg.Node, BootID: a.bootID, At: time.Now(), Why: why, Verdict: res.Verdict, Findings: fs,
		Tested: res.Tested, NotTested: res.NotTested, Inventory: a.inventory,
	}
	if why == checks.WhyProlog || why == checks.WhyScreen {
		r.Suite, r.Digest = res.Level, a.suites[res.Level]
		if a.held != nil && a.held.stale(a.state()) {
			r.Stale = a.held.Serial
		}
	}
	r.Observed = a.onlyObserved(fs)
	return r
}

// onlyObserved reports whether there are faults and nothing acts on any of them.
func (a *Agent) onlyObserved(fs []checks.Finding) bool {
	act, observe := Acting(*a.policy.Load(), fs)
	isFail := func(f checks.Finding) bool { return f.Verdict == checks.Fail }
	return slices.ContainsFunc(observe, isFail) && !slices.ContainsFunc(act, isFail)
}

// put hands a report to the outbox.
func (a *Agent) put(r checks.Report) {
	if err := a.cfg.Outbox.Put(r); err != nil {
		a.log.Error("report is not on disk", "report", r.ID, "verdict", r.Verdict.String(), "err", err)
	}
}

// burySafely writes the tombstone when fs hold a hard fault: before anybody is told of it. It runs in the loop.
// A fault of a check that is only observed voids nothing.
func (a *Agent) burySafely(fs []checks.Finding) {
	act, _ := Acting(*a.policy.Load(), fs)
	for _, f := range act {
		if f.HardFault() {
			a.bury(describe(f))
			return
		}
	}
}

// bury voids the certificate at hand.
func (a *Agent) bury(reason string) {
	serial := uint64(0)
	if a.held != nil {
		serial = a.held.Serial
	}
	if a.tombstone != nil && a.tombstone.Serial >= serial {
		return // it is void already
	}
	t := &Tombstone{Serial: serial, Reason: reason, BootID: a.bootID}
	a.tombstone = t // holds in memory even when the disk refuses it
	_ = a.store.save(tombstoneFile, t)
	a.log.Warn("certificate is void on this node", "cert", serial, "reason", reason)
}

func (a *Agent) saveKernel() {
	if seq := a.judged.Load(); a.kernel.Any && seq > 0 {
		a.advance(seq)
	}
	if a.kernelNew && a.store.save("kernel.json", a.kernel) == nil {
		a.kernelNew = false
	}
}

// contactEvery is how much of the contact's time a crash may lose. It is small against offline_max.
const contactEvery = 5 * time.Minute

func (a *Agent) saveContact() {
	if a.contact == nil || *a.contact-a.contactOn < contactEvery && a.contactOn != 0 {
		return
	}
	if a.store.save("contact.json", keptClock{a.bootID, *a.contact}) == nil {
		a.contactOn = *a.contact
	}
}

// state is the state that decisions rest on, as of now. It runs in the loop.
func (a *Agent) state() State {
	s := State{
		Now: a.cfg.Clock(), BootID: a.bootID, Driver: a.inventory.Driver, Known: a.known, Managed: a.desired.Managed,
		Node: a.desired.State, Marks: a.desired.Marks, Policy: *a.policy.Load(), Held: a.held, Tombstone: a.tombstone,
		Snapshot: a.seen, Contact: a.contact, Golden: a.goldenAlive(), GPUs: a.inventory.GPUs,
		Kernel: KernelState{Records: a.read.Load(), Lost: a.lost, LostAt: a.lostAt, Err: a.kernelErr},
	}
	if a.held != nil {
		s.Suite = a.suites[a.held.Level]
	}
	if e := a.expected(); e != nil && len(e.GPUs) > 0 {
		s.GPUs = e.GPUs
	}
	if a.cfg.Kernel == nil {
		s.Kernel.Err = "no kernel log is configured"
	} else {
		// The order matters: what the reader has handed on is counted before it is asked whether there is more.
		drained := a.cfg.Kernel.Drained()
		s.Kernel.Drained = drained && a.read.Load() == a.handled.Load()
	}
	return s
}
