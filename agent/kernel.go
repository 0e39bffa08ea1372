package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/kernlog"
)

// A KernelRecord is one record of the kernel log.
type KernelRecord struct {
	Seq  uint64    // rises by one with each record of a boot
	At   time.Time // by the kernel's clock since boot; it does not jump
	Line string
	Lost uint64 // records overwritten before this one could be read
	Boot string // the boot id it is of; empty when the log does not say

	Foreign bool // a program wrote it, not the kernel: whatever it looks like, it is no fault
}

// A KernelLog delivers the kernel log's records in order.
type KernelLog interface {
	// Read waits for the next record.
	Read(ctx context.Context) (KernelRecord, error)
	// Drained reports whether every record there is has been returned by Read.
	Drained() bool
}

// Bounds on how much of the kernel log is judged in one go, and for how long what was found may wait for more of it while
// there is more. In a flood it may wait for as long as the judging before it took: on a busy machine, where that is long, a
// batch of a few lines would cost as much as one of many.
const (
	maxBatch = 256
	minWait  = 2 * time.Millisecond
	maxWait  = 100 * time.Millisecond
)

// maxEvents bounds the harmless events kept for the next routine report.
const maxEvents = 64

// A sighting is what the kernel log said of one device.
type sighting struct {
	seq   uint64
	event catalog.LogEvent
}

// readKernel reads the kernel log until ctx ends and hands what concerns us to the loop. Other records cost no turn of it.
func (a *Agent) readKernel(ctx context.Context) {
	var batch []sighting
	var lost uint64
	var first time.Time
	wait := minWait
	for {
		rec, err := a.cfg.Kernel.Read(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.post(ctx, func() { a.kernelErr = err.Error() })
			a.log.Error("kernel log not read", "err", err)
			if !sleep(ctx, time.Second) {
				return
			}
			continue
		}
		if rec.Boot != "" && rec.Boot != a.bootID {
			a.fail(&BootChangedError{a.bootID, rec.Boot})
			return
		}
		n := a.read.Add(1)
		lost += rec.Lost
		seen := len(batch)
		if batch = sight(batch, rec); seen == 0 && len(batch) > 0 {
			first = time.Now()
		}
		if len(batch) == 0 && lost == 0 && n != 1 {
			a.judged.Store(rec.Seq)
			a.handled.Store(n)
			continue
		}
		full := len(batch) >= maxBatch || len(batch) > 0 && time.Since(first) > wait
		if !full && !a.cfg.Kernel.Drained() {
			continue
		}
		begun := time.Now()
		if a.call(ctx, func() { a.takeKernel(batch, lost, rec.Seq); a.handled.Store(n) }) != nil {
			return
		}
		batch, lost = batch[:0], 0
		wait = min(max(time.Since(begun), minWait), maxWait)
	}
}

// sight appends what one record says of ours; mostly that is nothing.
func sight(to []sighting, rec KernelRecord) []sighting {
	if rec.Foreign {
		return to
	}
	for ev := range kernlog.Message(rec.Line) {
		to = append(to, sighting{rec.Seq, catalog.LogEvent{Event: ev, At: rec.At}})
	}
	return to
}

// takeKernel judges what the kernel log said, up to and including record upTo. It runs in the loop.
func (a *Agent) takeKernel(batch []sighting, lost, upTo uint64) {
	now := a.cfg.Clock()
	a.kernelErr = ""
	if lost > 0 {
		a.lost += lost
		a.lostAt = now
		a.log.Warn("kernel log records were overwritten before they were read", "count", lost)
	}
	var news []catalog.LogEvent
	var first, last uint64
	for _, s := range batch {
		if a.kernel.Any && s.seq <= a.kernel.Seq {
			continue // judged by an earlier run in this boot
		}
		if len(news) == 0 {
			first = s.seq
		}
		last = s.seq
		news = append(news, s.event)
	}
	a.advance(upTo)
	if len(news) > 0 {
		a.tellEvents(a.kernelLog.Judge(news, a.knownHardware(), *a.policy.Load()), kernelID(a.cfg.Node, a.bootID, first, last), now, true)
	}
}

// advance moves the place up to which the kernel log has been judged.
func (a *Agent) advance(upTo uint64) {
	if !a.kernel.Any || upTo > a.kernel.Seq {
		a.kernel.Any, a.kernel.Seq, a.kernelNew = true, upTo, true
	}
}

// KernelCursor says up to which record an earlier run in stateDir judged the kernel log, and in which boot; ok is false
// when there was none.
func KernelCursor(stateDir string) (bootID string, seq uint64, ok bool) {
	var k keptKernel
	found, err := atomicfile.ReadJSON(filepath.Join(stateDir, "kernel.json"), &k)
	return k.BootID, k.Seq, found && err == nil && k.Any
}

// tellEvents takes in what was found in the kernel log, or in the driver's events instead: faults that are due are told at
// once, under the id given, the rest with the next routine report.
func (a *Agent) tellEvents(fs []checks.Finding, id string, now time.Duration, ofLog bool) {
	var due, faults []checks.Finding
	for _, f := range fs {
		again := ofLog && a.counted(f, now)
		if !again {
			a.stats.sighted(f)
		}
		if f.Verdict == checks.Fail {
			for _, w := range a.watchers {
				w.see(f) // repeats too: what is watched is whether it happens at all
			}
		}
		see := a.ledger.See
		if again {
			see = a.ledger.Amend
		}
		if n, tell := see(f, now); tell {
			f.Count = n
			due = append(due, f)
		}
	}
	due = a.group(due)
	a.stats.judged(due)
	for _, f := range due {
		switch {
		case f.Verdict == checks.Fail:
			faults = append(faults, f)
		case len(a.events) < maxEvents && f.Action != checks.None:
			a.events = append(a.events, f)
		}
	}
	if len(faults) == 0 {
		return
	}
	a.openFaults(faults)
	a.burySafely(faults)
	r := a.report(checks.WhyBackground, SuiteResult{Verdict: checks.FoldFindings(faults)}, faults)
	r.ID = id
	a.put(r)
	a.saveKernel()
	if w, ok := checks.Worst(faults); ok {
		a.log.Warn("driver names a fault", "check", w.Check, "xid", w.Code, "pci", w.Subject.PCI, "gpu_uuid", w.Subject.GPUUUID, "reason", w.Reason)
	}
}

// knownHardware is the node's hardware by enrolment and as seen last: a lost GPU can no longer be asked who it is.
func (a *Agent) knownHardware() checks.Inventory {
	inv := a.inventory
	if e := a.expected(); e != nil {
		inv.GPUs = append(slices.Clone(e.GPUs), inv.GPUs...)
	}
	inv.Node, inv.BootID = a.cfg.Node, a.bootID
	return inv
}

// openFaults adds hard faults to those that no later certificate has answered.
func (a *Agent) openFaults(fs []checks.Finding) {
	for _, f := range fs {
		if !f.HardFault() {
			continue
		}
		i := slices.IndexFunc(a.kernel.Open, func(o checks.Finding) bool { return keyOf(o) == keyOf(f) })
		switch {
		case i >= 0:
			a.kernel.Open[i] = f
		case len(a.kernel.Open) < maxEvents:
			a.kernel.Open = append(a.kernel.Open, f)
		}
		a.kernelNew = true
	}
}

// A watcher is told of each kernel-log fault as it comes.
type watcher struct {
	id  uint64
	see func(checks.Finding)
}

// watchKernel has see called in the loop with each fault from now on, until unwatchKernel with the id returned.
func (a *Agent) watchKernel(see func(checks.Finding)) (id uint64) {
	a.watcherID++
	a.watchers = append(a.watchers, watcher{a.watcherID, see})
	return a.watcherID
}

func (a *Agent) unwatchKernel(id uint64) {
	a.watchers = slices.DeleteFunc(a.watchers, func(w watcher) bool { return w.id == id })
}

// kernelID names the report of a run of kernel-log records: the same records give the same id after a restart. Where the run
// ends counts: an agent killed before it noted what it had told reads on from the same record, and finds more by then.
func kernelID(node, bootID string, first, last uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "kmsg %s %s %d %d", node, bootID, first, last))
	return "k" + hex.EncodeToString(sum[:15])
}

// screenID names the report of a screen: a screen done anew after a restart in the same boot gives the same id.
func screenID(effect, bootID string) string {
	sum := sha256.Sum256([]byte("screen " + effect + " " + bootID))
	return "s" + hex.EncodeToString(sum[:15])
}

func newID() string {
	var b [15]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program rather than return an error
	return "r" + hex.EncodeToString(b[:])
}

// sleep waits for d and reports whether ctx is still good.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
