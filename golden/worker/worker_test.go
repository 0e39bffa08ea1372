package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

// The test program is also the child, and the process behind the simulated driver.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "sim" && os.Args[2] == "cuda":
		fail(serve(os.Args[4]))
	case len(os.Args) > 2 && os.Args[1] == "child":
		fail(child(os.Args[2]))
	case len(os.Args) > 2 && os.Args[1] == "copies":
		fail(copiesChild(os.Args[2]))
	case len(os.Args) > 2 && os.Args[1] == "round": // and round
		fail(roundAndRound(os.Args[2]))
	case len(os.Args) > 1 && os.Args[1] == "deaf": // says nothing and hears nothing
		os.Stdout.WriteString("{\"device\":{\"uuid\":\"GPU-deaf\",\"sms\":4}}\n")
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case len(os.Args) > 1 && os.Args[1] == "junk":
		os.Stdout.WriteString("{\"stage\": nonsense\n")
		os.Stderr.WriteString("it broke\n")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if err != nil {
		return err
	}
	var n fakecuda.Node
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	return fakecuda.Serve(os.NewFile(3, "cuda"), n, visible, set)
}

func child(library string) error {
	s, err := golden.LookupSuite("prolog")
	if err != nil {
		return err
	}
	return Child(context.Background(), os.Stdout, Options{Library: library, Suite: s, Size: golden.Reduced, Seed: 11})
}

func roundAndRound(library string) error {
	s, err := golden.LookupSuite("soak")
	if err != nil {
		return err
	}
	return Child(context.Background(), os.Stdout, Options{Library: library, Suite: s, Size: golden.Reduced, Kernels: []string{"k18q_mma_s4", "k18_mma_f16"}, For: 6 * time.Second})
}

const uuid = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"

func healthy() fakecuda.GPU {
	return fakecuda.GPU{UUID: uuid, PCI: "0000:1b:00.0", Name: "NVIDIA H100 80GB HBM3", Capability: 90}
}

// library builds the simulated driver once.
var library = func() func(t *testing.T) string {
	var path string
	return func(t *testing.T) string {
		t.Helper()
		if path == "" {
			dir, err := os.MkdirTemp("", "assay-libcuda-")
			if err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(dir, "libcuda.so.1")
			if err := fakecuda.Build(path); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
}()

// node makes a simulated node and gives a parent for it.
func node(t *testing.T, n fakecuda.Node) Parent {
	t.Helper()
	dir := t.TempDir()
	b, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"node.json": b, "program": []byte(exe)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("ASSAY_SIM_DIR", dir)
	return Parent{Command: []string{exe, "child", library(t)}, Stage: 30 * time.Second, Total: time.Minute, Term: time.Second, Kill: 2 * time.Second, Killed: 10 * time.Second}
}

var simulated = golden.Grades{Simulated: true, Records: []golden.Record{{Digest: "*", Capability: 90, Simulated: true, By: "test"}}}

func runOne(t *testing.T, n fakecuda.Node) (golden.Result, golden.Verdict) {
	t.Helper()
	rs, err := node(t, n).Run(t.Context(), []string{uuid})
	if err != nil {
		t.Fatal(err)
	}
	return rs[0], golden.Judge(rs[0], simulated)
}

func TestAHealthyGPUIsVerified(t *testing.T) {
	r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{healthy()}})
	if v.Outcome != golden.Verified || v.Verified != v.Blocks || v.Blocks < 12 {
		t.Fatalf("%+v\n%+v", v, r)
	}
	if m := golden.Cover(r); m.Cells == 0 || m.Verified != m.Cells {
		t.Errorf("%d of %d cells", m.Verified, m.Cells)
	}
	if !r.GPU.Simulated || r.GPU.Capability != 90 || r.GPU.SMs != 4 || r.GPU.Driver != 12040 || r.GPU.PCI != "0000:1b:00.0" {
		t.Errorf("%+v", r.GPU)
	}
}

// Each block's clocks at both ends give the time under load, and whether it was at speed.
func TestAThrottledGPUIsVerifiedButNotAtSpeed(t *testing.T) {
	for _, tt := range []struct {
		mhz  int
		want float64 // share at speed
	}{{0, 1}, {1800, 1}, {990, 0}} {
		g := healthy()
		g.MHz = tt.mhz
		r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{g}})
		if v.Outcome != golden.Verified || r.GPU.MaxMHz != 1980 {
			t.Fatalf("%+v\n%+v", v, r)
		}
		for _, s := range r.Stages {
			e := s.Exposure
			if s.Skip != "" || s.Copy != nil {
				if e != (golden.Exposure{}) {
					t.Errorf("%d MHz: %s did not run, and counts %+v", tt.mhz, s.Kernel, e)
				}
				continue
			}
			mhz := float64(cmp.Or(tt.mhz, 1980))
			if e.Seconds <= 0 || e.AtSpeed != tt.want*e.Seconds || math.Abs(e.MHz-mhz) > mhz/20 {
				t.Errorf("%d MHz: %s: %+v", tt.mhz, s.Kernel, e)
			}
		}
	}
}

// Sensors are green and the tensor core of one SM has a stuck bit: found, and named to the lane.
func TestAStuckBitIsFoundAndLocated(t *testing.T) {
	bad := healthy()
	bad.Faults = `{"v":1,"id":"tc","class":"stuck","where":{"sm":2,"part":1,"unit":"tensor16","lane":9},"when":{"p":1},"do":{"or":"00000400"},"seed":1}`
	r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{bad}})
	if v.Outcome != golden.Wrong || !v.Hard || v.SM != 2 || v.Kernel != "k18_mma_f16" {
		t.Fatalf("%+v\n%s", v, r.Err)
	}
	w := v.Where
	if w == nil || w.Partition != 1 || w.Lane != 9 || w.Threads != 1 || w.Expected == w.Got || len(w.Operands) != 10 {
		t.Fatalf("located at %+v", w)
	}
	if want := (golden.Stuck{Unit: "tensor16", Lane: "9", Bit: 10, At: 1}); w.Stuck == nil || *w.Stuck != want {
		t.Errorf("explained by %v, want %v", w.Stuck, want)
	}
	for _, s := range r.Stages {
		for _, m := range s.SMs {
			if m.Mismatch != nil && m.SM != 2 {
				t.Errorf("%s blames SM %d", s.Kernel, m.SM)
			}
		}
	}
}

// A fault that acts now and then is found, and not taken for a reproduced one unless it was.
func TestAnIntermittentFaultIsWrongButNotAlwaysHard(t *testing.T) {
	bad := healthy()
	bad.Faults = `{"v":1,"id":"x","class":"stuck","where":{"sm":1,"part":3,"unit":"fma32","lane":"all"},"when":{"p":0.0003},"do":{"xor":"00000100"},"seed":1}`
	found := 0
	for seed := range uint64(4) {
		r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{bad}, Seed: seed})
		if v.Outcome != golden.Wrong {
			continue
		}
		found++
		for _, s := range r.Stages {
			if s.Kernel == v.Kernel && v.Hard != (s.Reproduced(v.SM) >= golden.Reruns) {
				t.Errorf("seed %d: hard %t after %d reruns", seed, v.Hard, s.Reproduced(v.SM))
			}
		}
	}
	if found == 0 {
		t.Error("never found")
	}
}

func TestWhatDoesNotRunIsNotTested(t *testing.T) {
	hang, errors, lost := healthy(), healthy(), healthy()
	hang.Hang, errors.Error, lost.Lost = true, 719, true
	volta := healthy()
	volta.Capability = 70
	for _, tt := range []struct {
		name   string
		node   fakecuda.Node
		reason string
		blame  golden.Blame
	}{
		{"no GPU", fakecuda.Node{Driver: "550.54.15"}, "cuInit: CUDA_ERROR_NO_DEVICE (100)", golden.BlameSetup},
		{"another GPU", fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{{UUID: "GPU-ff020304-0506-0708-090a-0b0c0d0e0f10"}}}, "NO_DEVICE", golden.BlameSetup},
		{"a GPU that is lost", fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{lost}}, "cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN (999)", golden.BlameSetup},
		{"a kernel that the device could not finish", fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{errors}}, "CUDA_ERROR_LAUNCH_FAILED (719)", golden.BlameDevice},
		{"an old driver", fakecuda.Node{Driver: "410.48", GPUs: []fakecuda.GPU{healthy()}}, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): Unsupported .version 7.0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, v := runOne(t, tt.node)
			if v.Outcome != golden.NotTested || !strings.Contains(v.Reason, tt.reason) || r.Blame != tt.blame {
				t.Errorf("%v, %q, blame %q", v.Outcome, v.Reason, r.Blame)
			}
		})
	}
	t.Run("a kernel that hangs", func(t *testing.T) {
		p := node(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{hang}})
		p.Stage, p.Term, p.Kill = 700*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond
		started := time.Now()
		rs, err := p.Run(t.Context(), []string{uuid})
		if v := golden.Judge(rs[0], simulated); err != nil || v.Outcome != golden.NotTested || !strings.Contains(v.Reason, "a call or a kernel hangs") || time.Since(started) > 8*time.Second {
			t.Errorf("%v, %q, %v after %s", v.Outcome, v.Reason, err, time.Since(started))
		}
	})
	t.Run("a capability for which some kernels are too new", func(t *testing.T) {
		r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{volta}})
		if v.Outcome != golden.Verified {
			t.Errorf("%+v", v)
		}
		for _, s := range r.Stages {
			if s.Kernel == "k18_mma_f16" && s.Skip == "" {
				t.Errorf("%s ran on a Volta", s.Kernel)
			}
		}
	})
}

// Where a job holds the memory, the kernels that need little still run, and the others are not tested.
func TestAKernelThatFindsNoMemoryIsNotTested(t *testing.T) {
	full := healthy()
	full.Room = 256 << 10
	r, v := runOne(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{full}})
	if v.Outcome != golden.NotTested || !strings.HasPrefix(v.Reason, "k16_hbm: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)") || strings.Contains(v.Reason, ";") || r.Err != "" {
		t.Errorf("%v, %q, %q", v.Outcome, v.Reason, r.Err)
	}
	if v.Verified != v.Blocks-4 {
		t.Errorf("%d of %d blocks", v.Verified, v.Blocks)
	}
}

func TestAChildThatSaysNothing(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := Parent{Command: []string{exe, "deaf"}, Stage: 200 * time.Millisecond, Total: time.Minute, Term: 100 * time.Millisecond, Kill: 200 * time.Millisecond, Killed: 10 * time.Second}
	rs, err := p.Run(t.Context(), []string{uuid})
	if err != nil || rs[0].GPU.UUID != "GPU-deaf" || !strings.Contains(rs[0].Err, "no word") {
		t.Errorf("%+v, %v", rs, err)
	}
	p.Command, p.Stage = []string{exe, "junk"}, time.Minute // it ends by itself
	rs, err = p.Run(t.Context(), []string{uuid})
	if err != nil || !strings.Contains(rs[0].Err, "it broke") || golden.Judge(rs[0], simulated).Outcome != golden.NotTested {
		t.Errorf("%+v, %v", rs, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("a job has come"))
	p.Command = []string{exe, "deaf"}
	rs, err = p.Run(ctx, []string{uuid})
	if err != nil || !strings.Contains(rs[0].Err, "stopped: a job has come") {
		t.Errorf("%+v, %v", rs, err)
	}
}

// Who asked for the GPU does not wait for a child that ignores its flag; the child is ended all the same.
func TestAChildThatIgnoresItsFlagIsLeftAndEnded(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	p := Parent{Command: []string{exe, "deaf"}, Stage: time.Minute, Total: time.Minute, Term: 200 * time.Millisecond, Kill: 700 * time.Millisecond,
		Killed: 30 * time.Second, Leave: 300 * time.Millisecond, Ended: func(_ string, err error) { ended <- err }}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(fmt.Errorf("a job has come")) })
	rs, err := p.Run(ctx, []string{uuid})
	var alive *AliveError
	if !errors.As(err, &alive) || alive.GPU != uuid || !strings.Contains(rs[0].Err, "a job has come") {
		t.Fatalf("%+v, %v", rs[0], err)
	}
	if syscall.Kill(alive.PID, 0) != nil {
		t.Error("it was killed before its time")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if syscall.Kill(alive.PID, 0) == nil {
		t.Error("it lives on")
	}
}

// A child that hears the flag stops between launches and says what it had.
func TestAChildStopsOnItsFlag(t *testing.T) {
	p := node(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{healthy()}})
	p.Term, p.Kill = 30*time.Second, time.Minute // no signal: the flag alone
	ctx, cancel := context.WithCancelCause(t.Context())
	p.Ended = func(string, error) {}
	time.AfterFunc(400*time.Millisecond, func() { cancel(fmt.Errorf("a job has come")) })
	rs, err := p.Run(ctx, []string{uuid})
	if err != nil || rs[0].Err != "stopped: a job has come" || rs[0].Seconds == 0 {
		t.Errorf("%q, %.1f s, %v", rs[0].Err, rs[0].Seconds, err)
	}
}

// Without the library the reason says so: the path of every machine without a GPU.
func TestNoLibrary(t *testing.T) {
	_, err := List("/nonexistent/libcuda.so.1")
	if err == nil || !strings.Contains(err.Error(), "load /nonexistent/libcuda.so.1") {
		t.Errorf("%v", err)
	}
	h, ok := err.(interface{ Hint() string })
	if !ok || !strings.Contains(h.Hint(), "NVIDIA driver") {
		t.Errorf("no hint: %v", err)
	}
}

// A soak goes round for much longer than a child may be silent, and its clean rounds are one line of its result.
func TestASoakIsNoSilence(t *testing.T) {
	p := node(t, fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{healthy()}})
	p.Command[1], p.Stage = "round", 3*time.Second
	rs, err := p.Run(t.Context(), []string{uuid})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for _, s := range rs[0].Stages {
		runs += max(s.Runs, 1)
	}
	if rs[0].Err != "" || rs[0].Seconds < 6 || runs <= len(rs[0].Stages) {
		t.Errorf("%q after %.1f s, %d runs in %d stages", rs[0].Err, rs[0].Seconds, runs, len(rs[0].Stages))
	}
}
