package catalog

import (
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/hostlog"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/checks/nic"
	"github.com/assay-gpu/assay/checks/nvrm"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/xid"
)

// OfLog reports whether a check judges what stands in the kernel log.
func OfLog(id string) bool {
	switch id {
	case xid.ID, xid.SwitchID, aer.ID, nvrm.ID, nic.ID, hostlog.ID:
		return true
	}
	return false
}

// A LogEvent is an event of the kernel log with its time. The kernel's clock since boot, added to the boot's time, is
// what readers should use: the wall clock may jump.
type LogEvent struct {
	Event kernlog.Event
	At    time.Time
	Boot  string // the boot id it is of; empty: the one that the known hardware was read in
}

// JudgeLog judges what the kernel log of one boot says, in the order given, not yet grouped: group it together with the
// snapshot's findings. GPUs are named by the address in known, the hardware last read: a lost GPU can no longer be asked
// who it is. Rows that only carry data on the event before them give nothing, nor do checks that policy turns off.
func JudgeLog(events []LogEvent, known checks.Inventory, tree aer.Tree, p policy.Policy) []checks.Finding {
	l := Log{Tree: tree}
	return l.Judge(events, known, p)
}

// sameThing is how far apart two lines may be that say one thing: the kernel writes them one right after the other.
const sameThing = 2 * time.Second

// maxParts bounds what a Log remembers of each kind. A node has fewer parts; a log can name any number.
const maxParts = 1024

// A Log judges the kernel log piece by piece, in order, and remembers what later lines need from earlier ones: which GPU a
// sentence speaks of, what is below a port, how often errors were seen. It forgets all at a new boot.
type Log struct {
	Tree aer.Tree // the node's PCI tree; may be replaced at any time

	boot   string
	uuids  map[string]string    // by address: what the driver said of a GPU's identity
	losses map[string]time.Time // by address: when a GPU was lost; "" for one that the line does not name
	said   map[nvrm.Kind]time.Time
	rates  map[rateKey]*aer.Rate

	repeated xid.Repeats
	below    map[string]string // by port: the GPU that showed itself below it
	named    sighted           // the GPU that the driver named last
	port     pendingError
}

type rateKey struct {
	subject  string
	severity aer.Severity
}

type sighted struct {
	device string
	at     time.Time
}

// A pendingError is a PCIe error whose lines may go on.
type pendingError struct {
	sighted
	severity aer.Severity
	received bool // only announced so far: the line that says what it was replaces it
	found    int  // the finding it gave, of those in the making; -1 when that has been handed out
	key      rateKey
	count    int
}

// Judge judges the next events. See JudgeLog.
func (l *Log) Judge(events []LogEvent, known checks.Inventory, p policy.Policy) []checks.Finding {
	l.port.found = -1
	byPCI := make(map[string]checks.GPU, len(known.GPUs))
	for _, g := range known.GPUs {
		byPCI[g.PCI] = g
	}
	var out []checks.Finding
	for _, e := range events {
		if e.Boot == "" {
			e.Boot = known.BootID
		}
		if e.Boot != l.boot || l.uuids == nil {
			l.forget(e.Boot)
		}
		n := len(out)
		out = l.judge(out, e, byPCI, p)
		for i := n; i < len(out); i++ {
			place(&out[i], known.Node, e.Boot, e.At)
		}
	}
	for i := range out {
		l.identify(&out[i], byPCI)
	}
	return settle(out, p)
}

func (l *Log) forget(boot string) {
	*l = Log{
		Tree: l.Tree, boot: boot, uuids: map[string]string{}, losses: map[string]time.Time{}, said: map[nvrm.Kind]time.Time{},
		rates: map[rateKey]*aer.Rate{}, below: map[string]string{},
	}
	l.port.found = -1
}

// judge appends what one event gives to out.
func (l *Log) judge(out []checks.Finding, e LogEvent, byPCI map[string]checks.GPU, p policy.Policy) []checks.Finding {
	var f checks.Finding
	switch ev := e.Event.(type) {
	case xid.Event:
		if ev.Detail || l.saidBefore(&ev, e.At) {
			return out
		}
		if ev.NVML { // it does not say which process, nor where
			f = xid.Judge(ev, p.XID)
			break
		}
		n, part := l.repeated.See(ev, e.At, p.XID)
		f = xid.Suspect(xid.Judge(ev, p.XID), n, part, p.XID)
	case aer.Event:
		return l.path(out, ev, e.At, byPCI, p)
	case nvrm.Event:
		if l.repeats(ev, e.At) {
			return out
		}
		f = nvrm.Judge(ev)
	case nic.Event:
		f = nic.Judge(ev)
	case hostlog.Event:
		f = hostlog.Judge(ev, p.HostLog)
	default:
		return out
	}
	if !runs(p, f.Check) {
		return out
	}
	return append(out, f)
}

// saidBefore fills in which GPU a sentence without a number means, and reports whether that has been said already: the
// driver writes a lost GPU's XID, and the same in words.
func (l *Log) saidBefore(ev *xid.Event, at time.Time) bool {
	if ev.Switch {
		return false
	}
	if ev.Prose && ev.PCI == "" && near(at, l.named.at) {
		ev.PCI = l.named.device
	}
	if ev.Code != xid.FellOffBus {
		return false
	}
	if was, ok := l.losses[ev.PCI]; ok && ev.Prose && near(at, was) {
		return true
	}
	keep(l.losses, ev.PCI, at)
	return false
}

// repeats takes in what a sentence of the driver's tells for later ones, and reports whether it adds nothing itself.
func (l *Log) repeats(ev nvrm.Event, at time.Time) bool {
	if ev.Kind == nvrm.Identity {
		l.named = sighted{ev.PCI, at}
		if ev.UUID != "" {
			keep(l.uuids, ev.PCI, ev.UUID)
		}
		return true
	}
	was, ok := l.said[ev.Kind]
	l.said[ev.Kind] = at
	switch {
	case !ev.After:
		return false
	case ev.Kind == nvrm.Lost:
		return len(l.losses) > 0 // it will say so until the next boot
	}
	return ok && near(at, was)
}

// identify names the GPU that a finding is about.
func (l *Log) identify(f *checks.Finding, byPCI map[string]checks.GPU) {
	if f.Subject.Kind != checks.KindGPU && f.Subject.Kind != checks.KindMIG || f.Subject.PCI == "" {
		return
	}
	if g, ok := byPCI[f.Subject.PCI]; ok {
		index := g.Index
		f.Subject.GPUUUID, f.Subject.GPUIndex = g.UUID, &index
		return
	}
	f.Subject.GPUUUID = l.uuids[f.Subject.PCI]
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= sameThing }

// keep sets m[k], forgetting all the rest when there is no room.
func keep[K comparable, V any](m map[K]V, k K, v V) {
	if _, have := m[k]; !have && len(m) >= maxParts {
		clear(m)
	}
	m[k] = v
}
