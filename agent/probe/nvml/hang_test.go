package nvml

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/policy"
)

const nullSignal = syscall.Signal(0)

func TestAHungCallBlocksItsGPUOnly(t *testing.T) {
	for _, call := range []string{"nvmlDeviceGetRemappedRows", "nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "count: 4")
			before := n.snapshot(20 * time.Second)
			if call == "nvmlDeviceGetHandleByIndex_v2" { // only a child that opens the GPU meets it
				n.set(1, "hang", "all")
			} else {
				n.set(1, "hang", call)
			}
			snap := n.snapshot(30 * time.Second)
			g := snap.GPUs[1]
			if len(snap.GPUs) != 4 || g.GPU != before.GPUs[1].GPU || g.Call.HungCount != 3 || !g.Call.Blocked || g.ECC.Have != checks.Unread {
				t.Fatalf("got %+v", snap)
			}
			if call == "nvmlDeviceGetRemappedRows" && g.Call.Hung != call {
				t.Errorf("hung call %q, want %q", g.Call.Hung, call)
			}
			if f := driver.JudgeCall(g.GPU, g.Call, 3); f.Verdict != checks.Fail || !f.Hard || f.Action != checks.Reboot {
				t.Errorf("judged %+v", f)
			}
			for _, i := range []int{0, 2, 3} {
				if !sameState(snap.GPUs[i], before.GPUs[i]) {
					t.Errorf("GPU %d: %+v", i, snap.GPUs[i])
				}
			}
			// It is not asked again: not by this supervisor, nor by one of a restarted agent.
			sim.ResetCalls(n.dir)
			start := time.Now()
			again := n.snapshot(20 * time.Second)
			if !again.GPUs[1].Call.Blocked || again.GPUs[2].ECC.Have != checks.Read || again.GPUs[2].Index != 2 {
				t.Errorf("next cycle: %+v", again.GPUs)
			}
			n.Close()
			restarted := n.supervisor()
			third := snapshot(t, restarted, 20*time.Second)
			if len(third.GPUs) != 4 || third.GPUs[1].GPU != before.GPUs[1].GPU || !third.GPUs[1].Call.Blocked || third.GPUs[1].Call.HungCount != 3 {
				t.Errorf("restarted agent: %+v", third.GPUs)
			}
			if third.GPUs[3].ECC.Have != checks.Read {
				t.Errorf("restarted agent does not read the others: %+v", third.GPUs)
			}
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("two cycles beside a blocked GPU took %v", d)
			}
			if c := sim.CallsOn(n.dir, 1); len(c) != 0 {
				t.Errorf("the blocked GPU was asked: %v", c)
			}
			// A reboot ends it.
			if err := sim.Reboot(n.dir); err != nil {
				t.Fatal(err)
			}
			if snap := snapshot(t, restarted, 20*time.Second); snap.GPUs[1].Call != (driver.Call{}) || snap.GPUs[1].RowRemap.Have != checks.Read || snap.BootID == third.BootID {
				t.Errorf("after the reboot: %+v", snap)
			}
		})
	}
}

func TestBlockedFile(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 2\ngpus: {1: {hang: nvmlDeviceGetEccMode}}", func(c *Config) { c.Policy.HungChildren = 1 })
	n.snapshot(20 * time.Second)
	b, err := os.ReadFile(filepath.Join(n.run, "blocked"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		BootID string `json:"boot_id"`
		GPUs   map[string]struct {
			Call, Reason string
			Since        time.Time
			GPU          checks.GPU
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	st := n.state()
	g := f.GPUs[st.GPUs[1].UUID]
	if f.BootID != st.BootID || len(f.GPUs) != 1 || g.Call != "nvmlDeviceGetEccMode" || g.Reason == "" || time.Since(g.Since).Abs() > time.Minute || g.GPU.PCI != st.GPUs[1].PCI {
		t.Errorf("got %s", b)
	}
	t.Run("another boot's is as none", func(t *testing.T) {
		os.WriteFile(sim.In(n.dir).BootID, []byte("another\n"), 0o644)
		n.set(1, "hang", "")
		if snap := snapshot(t, n.supervisor(), 20*time.Second); snap.GPUs[1].Call != (driver.Call{}) {
			t.Errorf("got %+v", snap.GPUs[1])
		}
	})
	t.Run("one that cannot be read is as none", func(t *testing.T) {
		os.WriteFile(filepath.Join(n.run, "blocked"), []byte("{"), 0o644)
		if snap := snapshot(t, n.supervisor(), 20*time.Second); snap.GPUs[1].Call != (driver.Call{}) {
			t.Errorf("got %+v", snap.GPUs[1])
		}
	})
}

// A GPU that hangs before anybody has read who it is still gets a name, and is blocked by it.
func TestAHangBeforeTheGPUIsKnown(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 3\ngpus: {1: {hang: all}}")
	snap := n.snapshot(30 * time.Second)
	want := checks.GPU{Node: "gpu001", Index: 1, PCI: n.state().GPUs[1].PCI}
	if len(snap.GPUs) != 3 || snap.GPUs[1].GPU != want || !snap.GPUs[1].Call.Blocked || snap.GPUs[2].ECC.Have != checks.Read {
		t.Fatalf("got %+v", snap.GPUs)
	}
	if _, ok := n.Blocked()[want.PCI]; !ok {
		t.Errorf("got %+v, want it by its address", n.Blocked())
	}
}

// A hang in the resident child alone may be the child's own: fresh ones decide.
func TestAHangThatDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 2")
	n.snapshot(20 * time.Second)
	n.set(0, "hang", "nvmlDeviceGetUUID")
	ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond) // the first hang, no more
	defer cancel()
	snap, err := n.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c := snap.GPUs[0].Call; c.HungCount > 1 || c.Blocked {
		t.Errorf("after one hang: %+v", c)
	}
	n.set(0, "hang", "")
	// A fresh child may be hanging still; the one after it is not.
	after := n.snapshot(20 * time.Second)
	if after.GPUs[0].Call != (driver.Call{}) || after.GPUs[0].ECC.Have != checks.Read {
		t.Errorf("got %+v", after.GPUs[0])
	}
	if len(n.Blocked()) != 0 {
		t.Errorf("blocked: %v", n.Blocked())
	}
	// And the count starts anew.
	n.snapshot(20 * time.Second)
	n.mu.Lock()
	left := len(n.suspects)
	n.mu.Unlock()
	if left != 0 {
		t.Errorf("%d suspects left", left)
	}
}

func TestSnapshotNeverOutlastsItsContext(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 8", func(c *Config) { c.Policy.CallDeadline = policy.Duration(3 * time.Second) })
	full := n.snapshot(20 * time.Second)
	n.set(0, "hang", "all")
	snap := n.snapshot(300 * time.Millisecond)
	if !snap.Init.OK || snap.Count != 8 || len(snap.GPUs) != 8 {
		t.Fatalf("got %+v", snap)
	}
	for i, g := range snap.GPUs {
		if g.GPU != full.GPUs[i].GPU || g.ECC.Have != checks.Unread || !strings.HasPrefix(g.Call.Err, "not read: ") {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
	// Even a Snapshot that never gets a turn answers in time.
	if snap := n.snapshot(50 * time.Millisecond); snap.Init.OK || len(snap.GPUs) != 8 {
		t.Errorf("got %+v", snap)
	}
	// The hang was counted meanwhile; the others are read, whatever becomes of GPU 0.
	if snap := n.snapshot(6 * time.Second); snap.GPUs[7].ECC.Have != checks.Read || snap.GPUs[0].Call.Hung == "" {
		t.Errorf("got %+v", snap)
	}
}

func TestInitThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 2\ninit: hang", func(c *Config) { c.Policy.InitDeadline = policy.Duration(time.Second) })
	snap := n.snapshot(1500 * time.Millisecond) // one attempt, and half of the next
	if snap.Init.OK || snap.Init.HungCount != 1 {
		t.Errorf("got %+v", snap.Init)
	}
	snap = n.snapshot(20 * time.Second)
	if snap.Init.OK || snap.Init.HungCount != 3 || snap.Count != -1 {
		t.Errorf("got %+v", snap.Init)
	}
	if f := driver.JudgeInit("gpu001", snap.Init, 3); f.Verdict != checks.Fail || !f.Hard || f.Action != checks.Reboot {
		t.Errorf("judged %+v", f)
	}
	before := sim.Calls(n.dir)["nvmlInit_v2"]
	if before != 3 {
		t.Errorf("%d children called nvmlInit, want 3", before)
	}
	n.snapshot(5 * time.Second)
	restarted := n.supervisor()
	if snap := snapshot(t, restarted, 5*time.Second); snap.Init.HungCount != 3 {
		t.Errorf("restarted agent: %+v", snap.Init)
	}
	if after := sim.Calls(n.dir)["nvmlInit_v2"]; after != before {
		t.Errorf("nvmlInit was called %d times more", after-before)
	}
	if err := sim.Reboot(n.dir); err != nil {
		t.Fatal(err)
	}
	if snap := snapshot(t, restarted, 20*time.Second); !snap.Init.OK || len(snap.GPUs) != 2 {
		t.Errorf("after the reboot: %+v", snap)
	}
}

// A process in uninterruptible sleep does not die of SIGKILL. Here the signal is not sent.
func TestAChildThatOutlivesSIGKILL(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 3")
	before := n.snapshot(20 * time.Second)
	n.kill = func(*os.Process) error { return nil }
	if err := n.Quiesce(t.Context()); err != nil { // a healthy child ends when its input does
		t.Fatal(err)
	}
	n.set(2, "hang", "nvmlDeviceGetFieldValues")
	n.SetPolicy(policy.Agent{CallDeadline: policy.Duration(700 * time.Millisecond), HungChildren: 100, StuckChild: policy.Duration(1500 * time.Millisecond)})
	snap := n.snapshot(4 * time.Second)
	if !strings.HasPrefix(snap.Init.ChildStuck, "nvmlDeviceGetFieldValues on "+before.GPUs[2].UUID) {
		t.Errorf("got %+v", snap.Init)
	}
	if g := snap.GPUs[2]; !g.Call.Blocked || g.Call.Hung != "nvmlDeviceGetFieldValues" || !strings.Contains(g.Call.Err, "after SIGKILL") {
		t.Errorf("got %+v", g)
	}
	if f := driver.JudgeInit("gpu001", snap.Init, 3); f.Verdict != checks.Fail || f.Action != checks.Reboot {
		t.Errorf("judged %+v", f)
	}
	if snap.GPUs[0].ECC.Have != checks.Read {
		t.Errorf("the others are not read: %+v", snap.GPUs[0])
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := n.Quiesce(short); err == nil {
		t.Error("Quiesce with a process that holds a device gave no error")
	}
	// Let them go.
	n.mu.Lock()
	for p := range n.stuck {
		p.cmd.Process.Kill()
	}
	n.mu.Unlock()
	long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := n.Quiesce(long); err != nil {
		t.Error(err)
	}
	n.kill = nil
	if snap := n.snapshot(10 * time.Second); snap.Init.ChildStuck != "" {
		t.Errorf("gone, but %+v", snap.Init)
	}
}

// The child ends with the agent: when its input does, and also when the agent is killed while the child is in a call that
// never returns.
func TestTheChildDoesNotOutliveTheAgent(t *testing.T) {
	t.Parallel()
	n := newNode(t, "count: 1")
	t.Run("idle", func(t *testing.T) {
		p, err := startProcess([]string{os.Args[0]}, n.childEnv(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.ask(request{Do: doInit}, "", 10*time.Second, func(message) {}); err != nil {
			t.Fatal(err)
		}
		p.stdin.Close()
		select {
		case <-p.Done():
		case <-time.After(10 * time.Second):
			t.Error("the child outlives its input")
			p.end(time.Second)
		}
	})
	t.Run("in a call that hangs", func(t *testing.T) {
		n.set(0, "hang", "all")
		agent := exec.Command(os.Args[0])
		agent.Env = append(append(os.Environ(), n.childEnv()...), "ASSAY_TEST_NVML_AGENT=1")
		out, err := agent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		for sim.CallsOn(n.dir, 0)["nvmlDeviceGetHandleByIndex_v2"] == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if !running(pid) {
			t.Fatal("the child is not there to begin with")
		}
		agent.Process.Kill()
		agent.Wait()
		for deadline := time.Now().Add(10 * time.Second); running(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the child outlives the agent")
			}
		}
	})
}

// agentMain stands for an agent in the test above: it starts a child, says its pid and waits for ever for its answer.
func agentMain() {
	child := []string{}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "ASSAY_TEST_NVML_AGENT=") {
			child = append(child, e)
		}
	}
	os.Clearenv()
	p, err := startProcess([]string{os.Args[0]}, child, nil, nil)
	if err != nil {
		panic(err)
	}
	for _, r := range []request{{Do: doInit}, {Do: doGPU}} {
		if r.Do == doGPU {
			fmt.Println(p.cmd.Process.Pid)
		}
		p.ask(r, "", time.Hour, func(message) {})
	}
}
