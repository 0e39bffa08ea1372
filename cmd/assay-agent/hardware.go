package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/metrics"
	"github.com/assay-gpu/assay/agent/probe/dcgm"
	"github.com/assay-gpu/assay/agent/probe/golden"
	"github.com/assay-gpu/assay/agent/probe/kmsg"
	"github.com/assay-gpu/assay/agent/probe/nvml"
	"github.com/assay-gpu/assay/agent/probe/sysfs"
	"github.com/assay-gpu/assay/agent/probe/user"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/policy"
)

// hardware is the outside world: the driver, through a child, the node itself, and the kernel log.
type hardware struct {
	prober *nodeProber
	dcgm   *dcgm.Prober
	kernel agent.KernelLog // nil when it could not be opened
	log    *kmsg.Reader    // the same; nil likewise
	golden *golden.Runner  // runs golden kernels, for screens and prologs
	dump   func(context.Context) ([]agent.KernelRecord, error)
	events <-chan agent.DriverEvent // nil for a check by hand, which waits for nothing
	tree   aer.Tree                 // empty when sysfs does not show it: errors of ports are then attributed to no GPU
}

// openHardware opens the kernel log and prepares the probe. No driver call is made here, nor ever in this process.
// remember says whether what is learned from the readings is kept; a check by hand leaves that to the daemon.
func openHardware(cfg config, remember bool, log *slog.Logger) (*hardware, error) {
	var events chan agent.DriverEvent
	var event func(nvml.XIDEvent)
	if remember {
		events = make(chan agent.DriverEvent, maxEvents)
		event = func(e nvml.XIDEvent) {
			select {
			case events <- agent.DriverEvent{PCI: e.GPU.PCI, MIG: e.MIG, Code: e.Code, At: e.At}:
			default: // a flood: what it is about has been told
			}
		}
	}
	s, err := nvml.New(nvml.Config{
		Argv: probeCommand(cfg.NVMLLibrary), RunDir: cfg.bootDir(), BootID: cfg.BootID, Sysfs: cfg.Sysfs, Cgroup: nvml.OwnCgroup(), Node: cfg.Node,
		Known: agent.KnownGPUs(cfg.StateDir), Policy: policy.Default().Agent, Event: event, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p := newNodeProber(cfg, s, remember, log)
	hw := &hardware{prober: p, dcgm: newDCGM(cfg), golden: golden.New(selfCommand("probe", "golden", "--sysfs", cfg.Sysfs), cfg.CUDALibrary), dump: dumpKernel(cfg), log: openKernel(cfg, log), events: events, tree: sysfs.PCITree(cfg.Sysfs)}
	if hw.log != nil {
		hw.kernel = kernelLog{hw.log}
	}
	return hw, nil
}

// maxEvents bounds the driver's events that wait to be judged.
const maxEvents = 256

// asides are what is read beside the snapshot.
func (h *hardware) asides() []agent.Aside {
	return []agent.Aside{h.dcgm, user.New(selfCommand("probe", "limits")), h.golden}
}

func newDCGM(cfg config) *dcgm.Prober {
	return dcgm.New(dcgm.Config{Argv: selfCommand("probe", "dcgm", "--library", cfg.DCGMLibrary), Dcgmi: cfg.Dcgmi})
}

func (h *hardware) close() {
	h.prober.history.Save()
	_ = h.prober.gpus.Close() // a child that cannot be ended is in the driver; nothing more can be done about it here
	if h.log != nil {
		_ = h.log.Close()
	}
}

func (h *hardware) onPolicy(p policy.Policy) { h.prober.setPolicy(p) }

func (h *hardware) malformed() uint64 {
	if h.log == nil {
		return 0
	}
	return h.log.Stats().Malformed
}

func (h *hardware) probeStats() map[string]metrics.ProbeStats {
	st := h.prober.gpus.Stats()
	return map[string]metrics.ProbeStats{"nvml": {Restarts: st.Restarts, Calls: st.Calls}}
}

// bootDir is where what holds for one boot of this node is kept. Agents of several nodes may share a run directory.
func (c config) bootDir() string {
	if c.nodeGiven {
		return filepath.Join(c.RunDir, c.Node)
	}
	return c.RunDir
}

// simulate points the configuration at a simulated node's directory, where nothing else was asked for, and tells the
// probe children of it.
func (c *config) simulate(given func(flag string) bool) {
	if c.Sim == "" {
		return
	}
	p := sim.In(c.Sim)
	for _, o := range []struct {
		flag string
		to   *string
		path string
	}{{"kmsg", &c.Kmsg, p.Kmsg}, {"sysfs", &c.Sysfs, p.Sysfs}, {"boot-id", &c.BootID, p.BootID}, {"nvml-library", &c.NVMLLibrary, p.Library}, {"proc", &c.Proc, p.Proc}, {"cuda-library", &c.CUDALibrary, p.CUDA}, {"dcgm-library", &c.DCGMLibrary, p.DCGMLibrary}, {"dcgmi", &c.Dcgmi, p.Dcgmi}} {
		if !given(o.flag) {
			*o.to = o.path
		}
	}
	c.calls = p.Calls
	// What repairs a simulated node must never reach the machine it is simulated on. The folder goes by the environment.
	for _, o := range []struct {
		flag    string
		to      *string
		command string
	}{{"reboot-command", &c.RebootCommand, "sim reboot"}, {"reset-command", &c.ResetCommand, "sim reset --gpu {uuid}"}} {
		if !given(o.flag) {
			*o.to = "/proc/self/exe " + o.command
		}
	}
	if !given("report-command") {
		c.ReportCommand = "" // it would tell of this machine
	}
	os.Setenv(sim.EnvDir, c.Sim)
	if exists(filepath.Join(c.Sim, "state.json")) {
		_ = linkCUDA(c.Sim) // without it there is no simulated CUDA, and golden runs say so
	}
}

// kernelLog is the kernel log as the agent reads it.
type kernelLog struct{ *kmsg.Reader }

func (k kernelLog) Read(ctx context.Context) (agent.KernelRecord, error) {
	r, err := k.Reader.Read(ctx)
	return kernelRecord(r), err
}

func kernelRecord(r kmsg.Record) agent.KernelRecord {
	return agent.KernelRecord{Seq: r.Seq, At: r.At, Line: r.Text, Lost: r.Lost, Boot: r.BootID, Foreign: r.Facility != 0}
}

// maxDump bounds what a capture keeps of the kernel log, in bytes of text: its end. The kernel's own buffer rarely holds more.
const maxDump = 4 << 20

// dumpKernel reads the whole kernel log up to now.
func dumpKernel(cfg config) func(ctx context.Context) ([]agent.KernelRecord, error) {
	return func(ctx context.Context) ([]agent.KernelRecord, error) {
		r, err := kmsg.Open(kmsg.Config{Path: cfg.Kmsg, BootID: cfg.BootID})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		var end logEnd
		for !r.Drained() {
			rec, err := r.Read(ctx)
			if err != nil {
				return end.records(), err
			}
			end.add(kernelRecord(rec))
		}
		return end.records(), nil
	}
}

// A logEnd keeps the last records of a log, up to maxDump bytes of text.
type logEnd struct {
	kept  []agent.KernelRecord
	first int // of kept, the first that is still wanted
	bytes int // of text from there on
}

func (e *logEnd) add(r agent.KernelRecord) {
	e.kept = append(e.kept, r)
	for e.bytes += len(r.Line); e.bytes > maxDump; e.first++ {
		e.bytes -= len(e.kept[e.first].Line)
		e.kept[e.first] = agent.KernelRecord{}
	}
	if e.first > len(e.kept)/4 { // before append makes it larger
		n := copy(e.kept, e.kept[e.first:])
		clear(e.kept[n:])
		e.kept, e.first = e.kept[:n], 0
	}
}

func (e *logEnd) records() []agent.KernelRecord { return e.kept[e.first:] }

// openKernel opens the kernel log where an earlier run left off. A log that cannot be read leaves every suite Unknown in it, and
// is no reason not to run.
func openKernel(cfg config, log *slog.Logger) *kmsg.Reader {
	after := kmsg.Cursor{}
	if boot, seq, ok := agent.KernelCursor(cfg.StateDir); ok {
		after = kmsg.Cursor{BootID: boot, Seq: seq}
	}
	r, err := kmsg.Open(kmsg.Config{Path: cfg.Kmsg, BootID: cfg.BootID, After: after})
	if err != nil {
		log.Error("kernel log not opened", "err", fmt.Errorf("%s: %w", cfg.Kmsg, err))
		return nil
	}
	return r
}
