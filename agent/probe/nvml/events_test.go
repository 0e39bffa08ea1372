package nvml

import (
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
)

// hears gives a node whose supervisor tells of events.
func hears(t *testing.T, scenario string) (*node, chan XIDEvent) {
	t.Helper()
	events := make(chan XIDEvent, 16)
	n := newNode(t, scenario, func(c *Config) { c.Event = func(e XIDEvent) { events <- e } })
	n.snapshot(20 * time.Second)
	return n, events
}

// raise raises an event until it is heard: the child registers a GPU a moment after it has been read.
func (n *node) raise(gpu, code int, events chan XIDEvent) XIDEvent {
	n.t.Helper()
	for range 40 {
		if err := sim.XIDBy(n.dir, gpu, code, "", sim.EventOnly); err != nil {
			n.t.Fatal(err)
		}
		select {
		case e := <-events:
			return e
		case <-time.After(500 * time.Millisecond):
		}
	}
	n.t.Fatal("no event within 20 s")
	return XIDEvent{}
}

func TestAnEventNamesItsGPU(t *testing.T) {
	t.Parallel()
	n, events := hears(t, "count: 2")
	want := n.state().GPUs[1]
	before := time.Now()
	e := n.raise(1, 94, events)
	if e.Code != 94 || e.GPU.UUID != want.UUID || e.GPU.PCI != want.PCI || e.GPU.Index != 1 || e.MIG != "" || e.At.Before(before) || e.At.After(time.Now()) {
		t.Fatalf("%+v, of %s %s", e, want.UUID, want.PCI)
	}
	for gpu := range 2 {
		if calls := sim.CallsOn(n.dir, gpu)["nvmlDeviceRegisterEvents"]; gpu == 1 && calls != 1 || calls > 1 {
			t.Errorf("GPU %d registered %d times", gpu, calls)
		}
	}
	// The readings go on beside the wait, and what the two say is never taken for one another.
	for range 3 {
		if err := sim.XIDBy(n.dir, 1, 45, "", sim.EventOnly); err != nil {
			t.Fatal(err)
		}
		if s := n.snapshot(20 * time.Second); len(s.GPUs) != 2 || s.GPUs[1].ECC.Have != checks.Read {
			t.Fatalf("%+v", s)
		}
	}
	if got := n.Stats().Restarts; len(got) != 0 {
		t.Errorf("children lost: %v", got)
	}
}

func TestAHungWaitBlocksNothing(t *testing.T) {
	t.Parallel()
	n, events := hears(t, "count: 2")
	n.raise(0, 94, events)
	n.raise(1, 94, events)
	pid := n.main.cmd.Process.Pid
	n.set(0, "hang", "nvmlEventSetWait_v2")
	for end := time.Now().Add(20 * time.Second); sim.Calls(n.dir)["nvmlEventSetWait_v2"] < 3 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(eventWait + 200*time.Millisecond) // the wait that hangs has begun
	waits := sim.Calls(n.dir)["nvmlEventSetWait_v2"]
	for range 4 {
		s := n.snapshot(20 * time.Second)
		for _, g := range s.GPUs {
			if g.Call.Hung != "" || g.Call.Blocked || g.ECC.Have != checks.Read {
				t.Fatalf("GPU %d: %+v", g.Index, g.Call)
			}
		}
	}
	time.Sleep(eventWait + 200*time.Millisecond)
	if got := sim.Calls(n.dir)["nvmlEventSetWait_v2"]; got != waits {
		t.Errorf("the wait came back: %d waits after %d", got, waits)
	}
	if n.main.cmd.Process.Pid != pid || len(n.Blocked()) != 0 || len(n.Stats().Restarts) != 0 {
		t.Errorf("child %d after %d, blocked %v, lost %v", n.main.cmd.Process.Pid, pid, n.Blocked(), n.Stats().Restarts)
	}
	if err := n.Quiesce(t.Context()); err != nil { // nor is the child's end held up
		t.Error(err)
	}
}

func TestNobodyWaitsWhereEventsAreNot(t *testing.T) {
	t.Parallel()
	well := func(t *testing.T, n *node, s catalog.Snapshot) {
		t.Helper()
		if len(s.GPUs) != 1 || s.GPUs[0].Call.Err != "" || s.GPUs[0].ECC.Have != checks.Read {
			t.Fatalf("%+v", s)
		}
		if calls := sim.Calls(n.dir); calls["nvmlEventSetWait_v2"] != 0 {
			t.Errorf("%d waits", calls["nvmlEventSetWait_v2"])
		}
	}
	t.Run("a library too old", func(t *testing.T) {
		n, _ := hears(t, "{count: 1, symbols_missing: [nvmlDeviceRegisterEvents]}")
		well(t, n, n.snapshot(20*time.Second))
	})
	t.Run("a board that raises none", func(t *testing.T) {
		n, _ := hears(t, "{count: 1, gpus: {0: {not_supported: [nvmlDeviceRegisterEvents]}}}")
		for end := time.Now().Add(10 * time.Second); sim.CallsOn(n.dir, 0)["nvmlDeviceRegisterEvents"] == 0 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		well(t, n, n.snapshot(20*time.Second))
	})
	t.Run("a probe that asks for none", func(t *testing.T) {
		n := newNode(t, "count: 1")
		well(t, n, n.snapshot(20*time.Second))
		if calls := sim.Calls(n.dir); calls["nvmlEventSetCreate"] != 0 {
			t.Errorf("%d event sets", calls["nvmlEventSetCreate"])
		}
	})
}

func TestPolicySwitchesEventsOffAndOn(t *testing.T) {
	t.Parallel()
	n, events := hears(t, "count: 1")
	n.raise(0, 94, events)
	n.SetEvents(false)
	n.snapshot(20 * time.Second)
	if err := sim.ResetCalls(n.dir); err != nil {
		t.Fatal(err)
	}
	n.snapshot(20 * time.Second)
	if err := sim.XIDBy(n.dir, 0, 95, "", sim.EventOnly); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if calls := sim.Calls(n.dir); calls["nvmlEventSetWait_v2"]+calls["nvmlDeviceRegisterEvents"] != 0 {
		t.Errorf("switched off: %v", calls)
	}
	for len(events) > 0 {
		if e := <-events; e.Code == 95 {
			t.Errorf("told: %+v", e)
		}
	}
	n.SetEvents(true)
	n.snapshot(20 * time.Second)
	if e := n.raise(0, 48, events); e.Code != 48 {
		t.Errorf("%+v", e)
	}
	if got := n.Stats().Restarts; len(got) != 0 {
		t.Errorf("children that ended badly: %v", got)
	}
}
