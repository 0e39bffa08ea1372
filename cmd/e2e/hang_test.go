package e2e

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// quickly makes a hang count after half a second instead of five, and prologs look for themselves: agents read at their
// start and then an hour later, and a snapshot counts for a second.
func quickly() options {
	return options{
		policy: fast("  call_deadline: 500ms\n  init_deadline: 500ms\n", "hooks:\n  snapshot_age: 1s\n"),
		agent:  []string{"--interval", "1h"},
	}
}

const hungCall = "nvmlDeviceGetRemappedRows"

// (g) NVML hangs on one GPU for ever. The prolog of the next job that uses it answers within its budget and exits 1, on our
// drain, which names GPU and call. The agent, killed and started again, asks that GPU nothing. A reboot ends it, and the job
// that was refused runs with no human command.
func TestNVMLHangsOnOneGPU(t *testing.T) {
	s := start(t, quickly())
	s.adopt()
	const node = "gpu004"
	hw := s.Hardware(node)
	before := s.awaitNode(node, "healthy", healthy)
	// A job on one GPU keeps the node from being rebooted before the story has looked at it.
	first := s.submit("sleep 600", "-w", node, "--gres=gpu:1")
	s.cluster.WaitJob(first, "RUNNING", limit)

	s.set(node, 5, map[string]string{"hang": hungCall})
	time.Sleep(1200 * time.Millisecond) // the snapshot of the last hook is too old to count then
	refused := s.submit("true", "-w", node, "--gres=gpu:7")
	drained := s.cluster.WaitNode(node, "drained by us", limit, slurm.Node.Drained)
	if !strings.HasPrefix(drained.Reason, "assay:Q-") || !strings.Contains(drained.Reason, "GPU 5") || !strings.Contains(drained.Reason, hungCall) {
		t.Errorf("reason %q; want our case, the GPU and the call", drained.Reason)
	}
	s.until("the job's prolog is refused", func() bool { return s.hookCount(node, "prolog", "refused") == 1 })
	if n := s.hookCount(node, "prolog", "refused_hard"); n != 0 {
		t.Errorf("%d prologs exited 1 without a permit", n)
	}
	if took := s.slowestHook(node); took > 14*time.Second {
		t.Errorf("a prolog took up to %v; its budget is 14 s", took)
	}
	if got := s.cluster.Job(first); got != "RUNNING" {
		t.Errorf("the job beside it is %s; it is to go on", got)
	}

	// The hook again, as for a job that slurmd was about to start.
	if a := s.ask(node, "prolog"); a.exit != 1 || a.took > 14*time.Second || !strings.Contains(a.said, "GPU 5") || !strings.Contains(a.said, hungCall) {
		t.Errorf("prolog %+v; want exit 1 with GPU and call", a)
	}

	// Killed and started again, the agent leaves the GPU alone, reads the others and knows what it knew.
	blocked := s.blockedFile(node)
	if !strings.Contains(blocked, hungCall) || strings.Count(blocked, "GPU-") == 0 {
		t.Errorf("blocked file %q; want the GPU and the call", blocked)
	}
	hung, sound := sim.CallsOn(hw, 5), calls(hw, 6)
	s.restart(node)
	if a := s.ask(node, "prolog"); a.exit != 1 || a.took > 14*time.Second {
		t.Errorf("prolog after the restart %+v; want exit 1", a)
	}
	if now := sim.CallsOn(hw, 5); !maps.Equal(now, hung) {
		t.Errorf("calls on the hanging GPU: %v, after the restart %v; want none more", hung, now)
	}
	if calls(hw, 6) <= sound {
		t.Error("the restarted agent does not read the other GPUs")
	}
	if now := s.blockedFile(node); now != blocked {
		t.Errorf("blocked file %q, after the restart %q", blocked, now)
	}

	s.cluster.Run("scancel", first)
	s.awaitNode(node, "healthy after its reboot", func(n wire.Node) bool { return healthy(n) && n.BootID != before.BootID })
	s.cluster.WaitJob(refused, "COMPLETED", limit)
	if b := s.blockedFile(node); b != "" {
		t.Errorf("blocked in the new boot: %s", b)
	}
}

// While it is not decided yet whether a GPU hangs, hooks answer within their budget and pass; the other GPUs are read, and
// what is wrong with one of them is told. With the deadlines as they are shipped a hang takes about 20 s to be one.
func TestHooksAndReadingsGoOnDuringAHang(t *testing.T) {
	s := plain(t, options{policy: fast("", "hooks:\n  snapshot_age: 1s\n")}, "gpu001", "gpu002")
	s.set("gpu001", 1, map[string]string{"hang": "all"})
	s.set("gpu002", 1, map[string]string{"hang": "all"})
	sim.ResetCalls(s.Hardware("gpu002"))
	s.set("gpu002", 5, map[string]string{"remap_failed": "true"})
	hung := time.Now()

	// On the first node hooks ask until it is decided.
	undecided := 0
	for s.blockedFile("gpu001") == "" {
		if time.Since(hung) > limit {
			t.Fatalf("not decided after %v", limit)
		}
		for _, hook := range []string{"prolog", "healthcheck", "epilog"} {
			a := s.ask("gpu001", hook)
			if hook == "prolog" && a.exit == 1 && a.took <= 15*time.Second && s.blockedFile("gpu001") != "" {
				continue // it was decided while this one waited
			}
			if a.exit != 0 || a.took > 15*time.Second {
				t.Errorf("undecided, %s %+v; want exit 0 within its budget of 14 s", hook, a)
			}
		}
		undecided++
	}
	if undecided == 0 {
		t.Error("no prolog asked while the hang was undecided: the story tells nothing")
	}
	s.awaitNode("gpu001", "cased", cased)

	// On the second the fault of another GPU came first: it was read and told while the hang was undecided.
	n := s.awaitNode("gpu002", "cased", cased)
	c := s.caseOf(n.Case)
	if len(c.Findings) == 0 || c.Findings[0].Check != "rowremap" || c.Findings[0].Subject.GPUIndex == nil || *c.Findings[0].Subject.GPUIndex != 5 {
		t.Errorf("case begins with %+v; want the row remap of GPU 5, told during the hang of GPU 1", c.Findings)
	}
	for _, gpu := range []int{0, 2, 7} {
		if calls(s.Hardware("gpu002"), gpu) == 0 {
			t.Errorf("GPU %d was not read after GPU 1 hung", gpu)
		}
	}
}

// nvmlInit hangs in three fresh processes: the node is at fault, a reboot is the remedy, hooks go by it, and no agent of this
// boot tries again.
func TestNVMLInitHangs(t *testing.T) {
	s := start(t, quickly())
	s.adopt()
	const node = "gpu006"
	hw := s.Hardware(node)
	before := s.awaitNode(node, "healthy", healthy)
	first := s.submit("sleep 600", "-w", node, "--gres=gpu:1")
	s.cluster.WaitJob(first, "RUNNING", limit)

	// The resident child would go on for years; a restart needs a fresh one.
	s.Agent(node).Kill(syscall.SIGTERM)
	s.set(node, -1, map[string]string{"init": "hang"})
	if err := sim.ResetCalls(hw); err != nil {
		t.Fatal(err)
	}
	s.startAgent(node)
	drained := s.cluster.WaitNode(node, "drained by us", limit, slurm.Node.Drained)
	if !strings.HasPrefix(drained.Reason, "assay:Q-") || !strings.Contains(drained.Reason, "nvmlInit hung in 3") {
		t.Errorf("reason %q; want our case, and nvmlInit three times", drained.Reason)
	}
	n := s.awaitNode(node, "cased", cased)
	if c := s.caseOf(n.Case); c.Cause != "driver" || c.Action != checks.Reboot {
		t.Errorf("case of %s, action %s; want driver, reboot", c.Cause, c.Action)
	}
	if a := s.ask(node, "prolog"); a.exit != 1 || a.took > 14*time.Second || !strings.Contains(a.said, "nvmlInit") {
		t.Errorf("prolog %+v; want exit 1, naming nvmlInit", a)
	}
	if got := initCalls(hw); got != 3 {
		t.Errorf("nvmlInit was called %d times, want 3", got)
	}
	s.restart(node)
	if a := s.ask(node, "prolog"); a.exit != 1 || a.took > 14*time.Second {
		t.Errorf("prolog after a restart %+v; want exit 1", a)
	}
	if got := initCalls(hw); got != 3 {
		t.Errorf("nvmlInit was called %d times in all after a restart, want 3", got)
	}

	s.cluster.Run("scancel", first)
	after := s.awaitNode(node, "healthy after its reboot", func(n wire.Node) bool { return healthy(n) && n.BootID != before.BootID })
	if after.Certificate.Serial <= before.Certificate.Serial {
		t.Errorf("certificate %d after %d", after.Certificate.Serial, before.Certificate.Serial)
	}
}

// calls is how often NVML was called on a GPU.
func calls(hw string, gpu int) (n int) {
	for _, c := range sim.CallsOn(hw, gpu) {
		n += c
	}
	return n
}

// initCalls is how often nvmlInit was called, under any of its names.
func initCalls(hw string) (n int) {
	for name, c := range sim.Calls(hw) {
		if strings.HasPrefix(name, "nvmlInit") {
			n += c
		}
	}
	return n
}

// slowestHook is the upper bound of the bucket that the slowest prolog on a node fell into, by the agent's own metrics.
func (s *site) slowestHook(node string) time.Duration {
	s.t.Helper()
	m, err := s.Metrics(s.ctx(), node)
	if err != nil {
		s.t.Fatal(err)
	}
	var bounds []time.Duration
	counts := map[time.Duration]string{}
	for line := range strings.Lines(m) {
		rest, ok := strings.CutPrefix(line, `assay_hook_duration_seconds_bucket{hook="prolog",`)
		if !ok {
			continue
		}
		_, le, _ := strings.Cut(rest, `le="`)
		le, count, _ := strings.Cut(le, `"} `)
		if d, err := time.ParseDuration(le + "s"); err == nil {
			bounds, counts[d] = append(bounds, d), count
		}
	}
	if len(bounds) == 0 {
		s.t.Fatalf("no durations of prologs on %s", node)
	}
	slices.Sort(bounds)
	all := counts[bounds[len(bounds)-1]]
	i := slices.IndexFunc(bounds, func(d time.Duration) bool { return counts[d] == all })
	return bounds[i]
}
