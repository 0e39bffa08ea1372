package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/processes"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/checks/user"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/golden"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (b *bench) effect(id, kind string, args map[string]string) wire.Effect {
	now := time.Now()
	return wire.Effect{ID: id, Node: "n1", Kind: kind, Term: 1, Args: args, BootID: *b.boot.Load(), Created: now, Deadline: now.Add(10 * time.Minute)}
}

// result waits for the next result and acknowledges it.
func (b *bench) result() wire.EffectResult {
	b.t.Helper()
	r, err := b.agent.NextResult(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.agent.ResultSent(r.ID)
	return r
}

func TestAScreenIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer func() { b.end() }()
		// A fault of before is why the screen is asked for; it does not count against it.
		b.desire(b.desired(1, 5))
		b.kernel.add(lineXID79)
		synctest.Wait()
		d := b.desired(2, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectScreen, map[string]string{"level": "standard"})}
		b.out.take()
		b.desire(d)
		r := b.result()
		if r.ID != "e1" || r.Outcome != "done" || r.BootID != "boot-1" || r.Node != "n1" {
			t.Fatalf("result %+v", r)
		}
		got := b.out.take()
		if len(got) != 1 || got[0].Why != checks.WhyScreen || got[0].Screen != "e1" || got[0].Suite != checks.Standard || got[0].Verdict != checks.Pass {
			t.Fatalf("reports %+v", got)
		}
		if b.hw.renewed != 1 {
			t.Errorf("what stands for a while was read anew %d times, want once", b.hw.renewed)
		}
		// The same desired state again, and a restart, do nothing more.
		b.desire(d)
		b.restart()
		b.desire(d)
		for _, r := range b.out.take() {
			if r.Screen != "" {
				t.Fatalf("screened again: %+v", r)
			}
		}
		// It is still wanted, so its result was lost: that is told again, as it was.
		if again := b.result(); again.ID != r.ID || again.Outcome != r.Outcome || again.Detail != r.Detail {
			t.Fatalf("result told again: %+v", again)
		}
		d.Version, d.Effects = 3, nil
		b.desire(d)
		if r, ok := b.agent.effects.unsent(); ok {
			t.Fatalf("result of an effect that is no longer wanted: %+v", r)
		}
	})
}

func TestAFaultDuringAScreenFailsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.hw.slow(time.Second)
		b.wait(2 * time.Second)
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectScreen, map[string]string{"level": "quick"})}
		b.desire(d)
		b.wait(500 * time.Millisecond)
		b.kernel.add(lineXID79)
		if r := b.result(); r.Detail != "verdict fail" {
			t.Fatalf("result %+v", r)
		}
	})
}

func TestAScreenAtAnUnknownLevelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{
			b.effect("e1", lifecycle.EffectScreen, map[string]string{"level": "deepest"}),
			b.effect("e2", lifecycle.EffectDrain, nil),
		}
		b.desire(d)
		if r := b.result(); r.Outcome != "failed" || !strings.Contains(r.Detail, "deepest") {
			t.Fatalf("result %+v", r)
		}
		if r := b.result(); r.ID != "e2" || r.Outcome != "skipped" {
			t.Fatalf("a kind that is not the agent's: %+v", r)
		}
	})
}

func TestAnEffectOfAnotherBootIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		e := b.effect("e1", lifecycle.EffectResetGPU, map[string]string{"gpus": "GPU-a"})
		e.BootID = "boot-0"
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{e}
		b.desire(d)
		r := b.result()
		if resets, _ := b.runner.did(); r.Outcome != "skipped" || resets != "" {
			t.Fatalf("result %+v, resets %v", r, resets)
		}
	})
}

func TestAResetNeedsAQuietGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.runner.set(func(r *fakeRunner) { r.holders = []string{"pid 4242 (python3)"} })
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectResetGPU, map[string]string{"gpus": "GPU-a,GPU-b"})}
		b.desire(d)
		r := b.result()
		if resets, _ := b.runner.did(); r.Outcome != "failed" || !strings.Contains(r.Detail, "4242") || resets != "" {
			t.Fatalf("with an open device: %+v, resets %v", r, resets)
		}
		b.runner.set(func(r *fakeRunner) { r.holders = nil })
		d.Version, d.Effects = 2, []wire.Effect{b.effect("e2", lifecycle.EffectResetGPU, map[string]string{"gpus": "GPU-a,GPU-b"})}
		b.desire(d)
		r = b.result()
		resets, _ := b.runner.did()
		if _, quiesced := b.hw.counts(); r.Outcome != "done" || resets != "GPU-a GPU-b" || quiesced != 2 {
			t.Fatalf("result %+v, resets %v, quiesced %d", r, resets, quiesced)
		}
		b.runner.set(func(r *fakeRunner) { r.err = errors.New("in use") })
		d.Version, d.Effects = 3, []wire.Effect{b.effect("e3", lifecycle.EffectResetGPU, map[string]string{"gpus": "GPU-a"})}
		b.desire(d)
		if r := b.result(); r.Outcome != "failed" || !strings.Contains(r.Detail, "in use") {
			t.Fatalf("result %+v", r)
		}
	})
}

// A reboot is done when the node comes back in another boot, and is not asked for twice.
func TestAReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectReboot, nil)}
		b.desire(d)
		if _, n := b.runner.did(); n != 1 {
			t.Fatalf("%d reboots", n)
		}
		b.restart() // stopped by the shutdown, started again because it was slow
		b.desire(d)
		if _, n := b.runner.did(); n != 1 {
			t.Fatalf("rebooted again after a restart: %d", n)
		}
		b.stop()
		<-b.ended
		b.ended <- nil
		b.boots("boot-2")
		b.restart()
		defer b.end()
		b.desire(d)
		r := b.result()
		if _, n := b.runner.did(); r.Outcome != "done" || r.BootID != "boot-2" || n != 1 {
			t.Fatalf("result %+v, %d reboots", r, n)
		}
	})
}

func TestARebootThatDoesNotComeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectReboot, nil)}
		b.desire(d)
		b.wait(11 * time.Minute)
		if r := b.result(); r.Outcome != "failed" || !strings.Contains(r.Detail, "did not go down") {
			t.Fatalf("result %+v", r)
		}
	})
}

func TestAResetCutOffByTheAgentsEndFails(t *testing.T) {
	dir := t.TempDir()
	s := store{dir, discard()}
	book, err := openEffects(s, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	e := wire.Effect{ID: "e1", Kind: lifecycle.EffectResetGPU}
	book.want([]wire.Effect{e})
	if _, resumed, _, ok, err := book.begin(); !ok || resumed || err != nil {
		t.Fatalf("begin: resumed %v ok %v err %v", resumed, ok, err)
	}
	// The agent is killed here. The next one finds that it had begun.
	book, err = openEffects(s, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	book.want([]wire.Effect{e})
	if _, resumed, in, ok, err := book.begin(); !ok || !resumed || in != "boot-1" || err != nil {
		t.Fatalf("begin after a restart: resumed %v in %q ok %v err %v", resumed, in, ok, err)
	}
}

func TestEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{
			b.effect("e1", lifecycle.EffectEvidence, map[string]string{"case": "Q-7F3K"}),
			b.effect("e2", lifecycle.EffectEvidence, map[string]string{"case": "../../etc"}),
		}
		b.desire(d)
		r := b.result()
		if r.Outcome != "failed" || len(r.Refs["snapshot.json"]) != 64 || !strings.HasPrefix(r.Detail, "partial: no kernel log") {
			t.Fatalf("result %+v", r)
		}
		c, err := ReadCapture(filepath.Join(b.dir, "evidence", "Q-7F3K"))
		if err != nil || len(c.Snapshot.GPUs) != 2 || c.Expected == nil {
			t.Fatalf("capture %+v, %v", c, err)
		}
		if r := b.result(); r.Outcome != "failed" {
			t.Fatalf("a path for a case: %+v", r)
		}
		// The driver hangs: what can be had is had by the deadline, and it says so.
		b.hw.slow(time.Hour)
		d.Version, d.Effects = 2, []wire.Effect{b.effect("e3", lifecycle.EffectEvidence, map[string]string{"case": "Q-2"})}
		b.desire(d)
		start := time.Now()
		if r := b.result(); r.Outcome != "failed" || !strings.HasPrefix(r.Detail, "partial") || time.Since(start) > 10*time.Minute+time.Second {
			t.Fatalf("result %+v after %s", r, time.Since(start))
		}
	})
}

// An effect that cannot be remembered is not begun: it might be done twice.
func TestAnEffectWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		if err := os.Mkdir(filepath.Join(b.dir, "effects.json"), 0o700); err != nil { // nothing can be renamed over it
			t.Fatal(err)
		}
		d := b.desired(1, 0)
		d.Effects = []wire.Effect{b.effect("e1", lifecycle.EffectReboot, nil)}
		b.desire(d)
		b.wait(20 * time.Second)
		if _, n := b.runner.did(); n != 0 {
			t.Fatal("rebooted without having it on disk")
		}
		if err := os.Remove(filepath.Join(b.dir, "effects.json")); err != nil {
			t.Fatal(err)
		}
		b.wait(6 * time.Second)
		if _, n := b.runner.did(); n != 1 {
			t.Fatalf("%d reboots once the disk is back", n)
		}
	})
}

func TestRedactedCaptureIsJudgedAlike(t *testing.T) {
	c := Capture{CaptureMeta: CaptureMeta{Node: "gpu-017", BootID: "boot-1", At: time.Unix(1_700_000_000, 0).UTC()}, Snapshot: wellSnapshot(), Policy: newBench(t).desired(1, 0).Policy}
	c.Snapshot.Node = "gpu-017"
	c.Snapshot.Host.Mounts.Mounts = []mounts.Mount{{Point: "/home", Device: "filer7:/home", Type: "nfs4", Network: true, HungFor: time.Hour}}
	c.Snapshot.Host.Processes.Sleeping = []processes.Process{{PID: 42, Name: "secretd (2)", Killed: true, For: time.Hour}}
	c.Snapshot.Host.NVMe = nvme.Reading{Have: checks.Read, Disks: []nvme.Disk{{Name: "nvme0", Model: "M", Serial: "S4XN1", State: "live"}}, Learned: []string{"M S4XN1", "M S4XN2"}}
	c.Snapshot.Texts = map[string]string{
		"proc/1/mounts": "/dev/sda / ext4 rw 0 0\nfiler7:/home /home nfs4 rw,addr=10.1.2.3 0 0\n", "proc/42/stat": "42 (secretd (2)) D 1", "proc/42/status": "Name:\tsecretd (2)\nState:\tD\n",
		"sys/class/nvme/nvme0/serial": "S4XN1\n",
	}
	c.Kernel = []KernelRecord{{Seq: 1, At: c.At, Line: lineXID79}, {Seq: 2, At: c.At, Line: lineXID31}}
	for i, line := range []string{
		"NVRM: Xid (PCI:0000:52:00): 43, pid=991234, name=ray::alice fn, Ch 00000008",
		"Memory cgroup out of memory: Killed process 991234 (alice (2)) total-vm:1kB",
		"INFO: task alice:worker:991234 blocked for more than 120 seconds.",
		"INFO: task nvidia-smi:99 blocked for more than 500 seconds.",
		"watchdog: BUG: soft lockup - CPU#3 stuck for 200s! [alice:991234]",
		`audit: type=1100 acct="alice" exe="/home/alice/train.py"`,
		"Command line: root=/dev/sda token=hunter2",
		"NVRM: GPU at PCI:0000:52:00: GPU-52c13216-2905-4ccd-9b9b-2101c42a4066",
		"NVRM: GPU Board Serial Number: 1653199999999",
		"NVRM: GPU 0000:52:00.0: GPU serial number is 1653199999999.",
	} {
		c.Kernel = append(c.Kernel, KernelRecord{Seq: uint64(3 + i), At: c.At.Add(time.Duration(i) * time.Hour), Line: line})
	}
	at, uuid := c.At, "GPU-00000000-1111-2222-3333-444444444444"
	c.Policy.DCGM.Health, c.Policy.DCGM.Screen, c.Policy.DCGM.Address, c.Policy.Golden.Screen = "standalone", 2, "dcgm7.corp:5555", true
	c.Policy.Golden.Records = []policy.GoldenRecord{{Kernel: "k", By: "ann@corp"}}
	c.Policy.UserChecks = map[string]policy.UserCheck{"x": {Command: []string{"/opt/ann/check"}, User: "bob1", Env: map[string]string{"T": "hunter2"}}}
	var asExit policy.Set
	if err := json.Unmarshal([]byte(`{"user_checks":{"x":{"format":"exit"}}}`), &asExit); err != nil {
		t.Fatal(err)
	}
	c.Policy.Overrides = []policy.Override{{Name: "ours", Nodes: []string{"gpu-017"}, Set: asExit}}
	c.Beside = catalog.Beside{
		Health: &catalog.HealthRead{At: at, Health: dcgm.Health{Have: checks.Read, Err: "10.1.2.3", GPUs: []dcgm.HealthGPU{{UUID: uuid}},
			Incidents: []dcgm.Incident{{System: 0x10, Result: 20, Code: 52, Group: dcgm.OfGPU, Text: "of " + uuid}}}},
		Diag: &catalog.DiagRead{At: at, Level: 2, Output: `{"DCGM Diagnostic":{"runtime_error":"` + uuid + ` at 10.1.2.3","entity_groups":[{"entity_group_id":1,"entities":[{"entity_id":0,"serial_num" : "S77"}]}]}}`, Trouble: "10.1.2.3"},
		User: map[string]catalog.UserRead{"x": {At: at, Outcome: user.Outcome{Exit: 3, Stdout: "ann is full", Stderr: "of bob1"}}},
		Golden: &catalog.GoldenRead{At: at, GPUs: []checks.GPU{{UUID: "GPU-away", Serial: "S99"}}, Results: map[string]sdc.Reading{
			"GPU-away": {Have: checks.Read, Result: golden.Result{GPU: golden.Device{UUID: "GPU-away"}, Blame: golden.BlameHost}}}},
	}
	dir := t.TempDir()
	if _, err := c.Write(dir); err != nil {
		t.Fatal(err)
	}
	back, err := ReadCapture(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, got := c.Judge(checks.Quick), back.Judge(checks.Quick)
	if !reflect.DeepEqual(back.Snapshot.Texts, c.Snapshot.Texts) {
		t.Errorf("texts read back: %q", back.Snapshot.Texts)
	}
	if showFindings(want) != showFindings(got) || want.Verdict != checks.Fail {
		t.Fatalf("judged again:\n%s\nwant\n%s", showFindings(got), showFindings(want))
	}
	if r := c.Judge(checks.Standard); !strings.Contains(showFindings(r), "user/x node fail") || showFindings(back.Judge(checks.Standard)) != showFindings(r) {
		t.Fatalf("at level standard\n%s\nagain\n%s", showFindings(r), showFindings(back.Judge(checks.Standard)))
	}
	red, err := c.Redact([]byte("salt"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if _, err := red.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{
		"gpu-017", "GPU-a", "\"s0\"", "python3", "boot-1", "filer7", "secretd", "S4XN", "10.1.2.3", "alice", "hunter2", "52c13216", "1653199999999", "dcgm7", "ann", "bob1", uuid, "GPU-away", "S77", "S99",
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), secret) {
				t.Errorf("%s still holds %s", filepath.Base(f), secret)
			}
		}
	}
	if a, b := c.Judge(checks.Standard), red.Judge(checks.Standard); bones(a) != bones(b) {
		t.Errorf("redacted:\n%s\nwant\n%s", bones(b), bones(a))
	}
	r := red.Judge(checks.Quick)
	if r.Verdict != want.Verdict || len(r.Findings) != len(want.Findings) {
		t.Fatalf("redacted: %s, %d findings; want %s, %d", r.Verdict, len(r.Findings), want.Verdict, len(want.Findings))
	}
	for i, f := range r.Findings {
		if w := want.Findings[i]; f.Check != w.Check || f.Verdict != w.Verdict || f.Action != w.Action || f.Code != w.Code || f.Count != w.Count {
			t.Errorf("redacted: %+v\nwant %+v", f, w)
		}
	}
}

// showFindings puts findings in a form to compare.
func showFindings(r SuiteResult) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.Check + " " + f.Subject.Key() + " " + f.Verdict.String() + " " + f.Action.String() + " " + f.Reason + " " + f.Incident + "\n")
	}
	return b.String()
}

// bones are findings without what redaction changes.
func bones(r SuiteResult) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %d %s %s hard=%t\n", f.Check, f.Subject.Kind, f.Code, f.Verdict, f.Action, f.Hard)
	}
	return b.String()
}
