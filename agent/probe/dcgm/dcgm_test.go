package dcgm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/dcgmlib"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
)

// TestMain is the child and dcgmi too, as the prober under test starts this binary again.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "dcgmi" {
		os.Exit(sim.Dcgmi(os.Args[1:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == "child" {
		q := Question{Library: os.Args[2], Every: time.Minute}
		if i := len(os.Args) - 1; os.Args[i-1] == "--address" {
			q.Address = os.Args[i]
		}
		if err := Child(os.Stdout, q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "assay-dcgm-test-")
	if err != nil {
		panic(err)
	}
	libraries = dir
	if err := dcgmlib.Build(filepath.Join(dir, "libdcgm.so.4")); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), nil, 0o644); err != nil { // not loaded here
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// libraries is the folder with the simulated libraries.
var libraries string

// A node is a simulated node of two GPUs with a prober over it, whose clock stands.
type node struct {
	t   *testing.T
	dir string
	*Prober
	now time.Time
	pol policy.Policy
}

func newNode(t *testing.T, changes map[string]string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), now: time.Unix(1e9, 0), pol: policy.Default()}
	sc, err := sim.ParseScenario("", []byte("count: 2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Init(n.dir, sc, "gpu001", filepath.Join(libraries, "libnvidia-ml.so.1")); err != nil {
		t.Fatal(err)
	}
	n.set(-1, changes)
	at := sim.In(n.dir)
	n.Prober = New(Config{Argv: []string{os.Args[0], "child", at.DCGMLibrary}, Dcgmi: at.Dcgmi, Env: []string{sim.EnvDir + "=" + n.dir}})
	n.Prober.now = func() time.Time { return n.now }
	n.pol.DCGM.Health = "standalone"
	return n
}

func (n *node) set(gpu int, changes map[string]string) {
	n.t.Helper()
	if len(changes) > 0 {
		if err := sim.Set(n.dir, gpu, changes); err != nil {
			n.t.Fatal(err)
		}
	}
}

// look takes a look and shows what it gives, one finding a line.
func (n *node) look(screen checks.Level) string {
	n.t.Helper()
	fs, _ := n.Look(context.Background(), n.pol, checks.Inventory{Node: "gpu001", BootID: "b"}, screen)
	var out []string
	for _, f := range fs {
		who := string(f.Subject.Kind)
		if f.Subject.GPUIndex != nil {
			who = fmt.Sprintf("gpu %d", *f.Subject.GPUIndex)
		}
		if f.At.IsZero() || f.BootID != "b" || f.Subject.Node != "gpu001" {
			n.t.Errorf("%+v", f)
		}
		out = append(out, fmt.Sprintf("%s %s: %s %s %d: %s", f.Check, who, f.Verdict, f.Action, f.Code, f.Reason))
	}
	return strings.Join(out, "\n")
}

func (n *node) wants(screen checks.Level, lines ...string) {
	n.t.Helper()
	got := n.look(screen)
	for i, line := range strings.Split(got, "\n") {
		if len(strings.Split(got, "\n")) != len(lines) || !strings.HasPrefix(line, lines[i]) {
			n.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
			return
		}
	}
}

func TestAHostEngineKeepsTheWatches(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up"})
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown none 0: no incident, but watched for 0s of 1m only", "dcgm_health gpu 1: unknown none 0:")
	n.now = n.now.Add(59 * time.Second)
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown none 0: no incident, but watched for 0s of 1m only", "dcgm_health gpu 1: unknown") // not due yet
	n.now = n.now.Add(time.Second)
	n.wants(checks.NoLevel, "dcgm_health gpu 0: pass none 0: no incident", "dcgm_health gpu 1: pass none 0: no incident")

	// An isolate.
	n.set(1, map[string]string{"dcgm_error": "52"})
	n.now = n.now.Add(time.Minute)
	n.wants(checks.NoLevel, "dcgm_health gpu 1: fail drain 52: memory: Found 1 faulty memory element(s) on GPU 1 (FAULTY_MEMORY)", "dcgm_health gpu 0: pass")

	// A host engine that was started anew has to watch again.
	n.set(1, map[string]string{"dcgm_error": "0"})
	if err := os.Remove(filepath.Join(n.dir, "dcgm.watches")); err != nil {
		t.Fatal(err)
	}
	n.now = n.now.Add(time.Minute)
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown none 0: no incident, but watched for 0s", "dcgm_health gpu 1: unknown")

	// An agent that was started anew does not know since when they have been set.
	n.Prober.since, n.Prober.asked = time.Time{}, time.Time{}
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown none 0: no incident, but watched for 0s", "dcgm_health gpu 1: unknown")

	n.pol.DCGM.Health = "off"
	n.wants(checks.NoLevel, "")
}

// No screen waits for a silence to count, nor for a host engine that is away unless policy requires DCGM.
func TestAScreenDoesNotWaitForTheWatches(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up"})
	n.wants(checks.Standard, "")
	n.set(1, map[string]string{"dcgm_error": "52"})
	n.wants(checks.Quick, "dcgm_health gpu 1: fail drain 52:")
	n.now = n.now.Add(time.Minute)
	n.wants(checks.Quick, "dcgm_health gpu 1: fail drain 52:", "dcgm_health gpu 0: pass none")
	n.set(-1, map[string]string{"dcgm": "down"})
	n.wants(checks.Quick, "")
	n.pol.DCGM.Required = true
	n.wants(checks.Quick, "dcgm_health node: unknown none 0: DCGM gave no answer")
}

func TestGPUsAreNamedByDCGM(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up"})
	h := n.Health(context.Background(), n.pol)
	s, err := sim.Read(n.dir)
	if err != nil || len(h.GPUs) != 2 || h.GPUs[1].UUID != s.GPUs[1].UUID || h.GPUs[1].PCI != s.GPUs[1].PCI || h.Version != "4.4.2" || h.Have != checks.Read {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestAnEngineOfOnesOwn(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "down"})
	n.pol.DCGM.Health = "embedded"
	n.set(0, map[string]string{"dcgm_error": "29"})
	n.now = n.now.Add(time.Hour)
	n.wants(checks.NoLevel, "dcgm_health gpu 0: pass fix_config 29: driver: 1: persistence mode", "dcgm_health gpu 0: unknown none 0: no incident, but watched for 0s", "dcgm_health gpu 1: unknown none 0: no incident, but watched for 0s of 1m only")
}

func TestWhatKeepsDCGMFromAnswering(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes map[string]string
		change  func(*node)
		want    string
	}{
		{"no DCGM", nil, nil, "dcgm_health node: not_applicable none 0: no DCGM on this node"},
		{"no DCGM, and policy requires it", nil, func(n *node) { n.pol.DCGM.Required = true }, "dcgm_health node: unknown none 0: policy requires DCGM, and it is not there: no libdcgm.so.4"},
		{"the host engine is away", map[string]string{"dcgm": "down"}, nil, "dcgm_health node: unknown none 0: DCGM gave no answer: dcgmConnect_v2: the host engine cannot be reached"},
		{"the host engine hangs", map[string]string{"dcgm": "hang"}, func(n *node) { n.pol.DCGM.Deadline = policy.Duration(time.Second) }, "dcgm_health node: unknown none 0: DCGM gave no answer: dcgmHealthCheck did not return within 1s"},
		{"a library that is none", map[string]string{"dcgm": "up"}, func(n *node) {
			n.cfg.Argv[2] = filepath.Join(n.dir, "state.json")
		}, "dcgm_health node: unknown none 0: DCGM gave no answer: "},
		{"a child that cannot be started", map[string]string{"dcgm": "up"}, func(n *node) { n.cfg.Argv = []string{"/no/such/agent"} }, "dcgm_health node: unknown none 0: DCGM gave no answer: the probe process ended in the start: /no/such/agent: no such file"},
		{"a child that dies", map[string]string{"dcgm": "up"}, func(n *node) { n.cfg.Argv = []string{"/bin/sh", "-c", "echo oops >&2; kill -SEGV $$"} }, "dcgm_health node: unknown none 0: DCGM gave no answer: the probe process ended in the start: segmentation fault: oops"},
		{"another address", map[string]string{"dcgm": "up"}, func(n *node) { n.pol.DCGM.Address = "10.0.0.1" }, "dcgm_health node: unknown none 0: DCGM gave no answer: dcgmConnect_v2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.changes)
			if tt.change != nil {
				tt.change(n)
			}
			n.wants(checks.NoLevel, tt.want)
		})
	}
}

func TestASocket(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up"})
	n.pol.DCGM.Address = "unix:///run/nv-hostengine.sock"
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown none 0: no incident", "dcgm_health gpu 1:")
}

// A child that SIGKILL does not end is a fault only after policy's time; no other is started beside it.
func TestAChildThatCannotBeEnded(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up"})
	n.stuck = &stuckChild{os.Getpid(), "dcgmHealthCheck", n.now}
	n.wants(checks.NoLevel, "dcgm_health node: unknown none 0: DCGM gave no answer: a process in dcgmHealthCheck does not end")
	if err := n.Quiesce(context.Background()); err == nil {
		t.Error("quiet, with a child in the driver")
	}
	n.now = n.now.Add(time.Minute)
	n.wants(checks.NoLevel, "dcgm_health node: fail reboot 0: a process that called dcgmHealthCheck is still there after SIGKILL")
	n.stuck.pid = 1 << 30 // gone
	n.now = n.now.Add(time.Minute)
	n.wants(checks.NoLevel, "dcgm_health gpu 0: unknown", "dcgm_health gpu 1: unknown")
	if err := n.Quiesce(context.Background()); err != nil {
		t.Error(err)
	}
}

// Who stops waiting for the diagnostic has not seen it pass its deadline.
func TestADiagnosticThatIsBrokenOff(t *testing.T) {
	n := newNode(t, map[string]string{"dcgm": "up", "dcgm_diag": "hang"})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if d := n.Diag(ctx, 1, n.pol); d.Trouble != "dcgmi was broken off before its deadline" {
		t.Errorf("%+v", d)
	}
}

func TestAScreenRunsTheDiagnostic(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes map[string]string
		gpu     map[string]string // of GPU 1
		change  func(*policy.DCGM)
		want    []string
	}{
		{"well", map[string]string{"dcgm": "up"}, nil, nil, []string{"dcgm gpu 0: pass none 0: passed: software, memory", "dcgm gpu 1: pass none 0: passed: software, memory"}},
		{"an isolate", map[string]string{"dcgm": "up"}, map[string]string{"dcgm_error": "52"}, nil,
			[]string{"dcgm gpu 1: fail drain 52: memory: Found 1 faulty memory element(s) on GPU 1 (FAULTY_MEMORY)", "dcgm gpu 0: pass none 0: passed: software, memory"}},
		{"a remap is pending", map[string]string{"dcgm": "up"}, map[string]string{"remap_pending": "true"}, nil,
			[]string{"dcgm gpu 1: pass reset_gpu 85:", "dcgm gpu 0: pass none", "dcgm gpu 1: pass none 0: passed: memory"}},
		{"a GPU is lost", map[string]string{"dcgm": "up"}, map[string]string{"lost": "true"}, nil, []string{"dcgm gpu 1: fail reboot 120:", "dcgm gpu 0: pass none"}},
		{"all skipped", map[string]string{"dcgm": "up", "dcgm_diag": "skip"}, nil, nil, []string{"dcgm gpu 0: unknown none 0: not tested", "dcgm gpu 1: unknown none 0: not tested"}},
		{"it cannot run", map[string]string{"dcgm": "up", "dcgm_diag": "error"}, nil, nil, []string{"dcgm node: unknown none 0: the diagnostic did not run: Error: Unable to complete"}},
		{"it is killed", map[string]string{"dcgm": "up", "dcgm_diag": "cut"}, nil, nil, []string{"dcgm gpu 0: unknown", "dcgm gpu 1: unknown", "dcgm node: unknown none 0: the output is cut short"}},
		{"the host engine is away", map[string]string{"dcgm": "down"}, nil, nil, []string{"dcgm node: unknown none 0: the diagnostic did not run: Error: Unable to establish a connection"}},
		{"it does not end", map[string]string{"dcgm": "up", "dcgm_diag": "hang"}, nil, func(d *policy.DCGM) { d.R2 = policy.Duration(300 * time.Millisecond) },
			[]string{"dcgm node: unknown none 0: the diagnostic did not run: dcgmi did not end within 300ms"}},
		{"no DCGM", nil, nil, nil, []string{"dcgm node: not_applicable none 0: no DCGM on this node"}},
		{"no DCGM, and policy requires it", nil, nil, func(d *policy.DCGM) { d.Required = true }, []string{"dcgm node: unknown none 0: policy requires DCGM, and it is not there: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.changes)
			n.set(1, tt.gpu)
			n.pol.DCGM.Health, n.pol.DCGM.Screen = "off", 2
			if tt.change != nil {
				tt.change(&n.pol.DCGM)
			}
			n.wants(checks.Quick, "")
			n.wants(checks.Standard, tt.want...)
		})
	}
}

// The sizes are DCGM's own: what DCGM_CASSERT in its sources says of dcgmConnectV2Params_version, dcgmHealthResponse_version4
// (64 incidents), dcgmPolicy_version and dcgmDeviceAttributes_version3.
func TestStructures(t *testing.T) {
	for name, tt := range map[string]struct{ got, want uint32 }{
		"dcgmConnectV2Params_v2": {structVersion[connectParams](2), 0x02000010}, "dcgmPolicy_v1": {structVersion[policyInfo](1), 16777360},
		"dcgmDeviceAttributes_v3": {structVersion[deviceAttributes](3), 0x3001464}, "dcgmVersionInfo_v2": {structVersion[versionInfo](2), 516 | 2<<24},
		"dcgmHealthSetParams_v2": {structVersion[healthSet](2), 40 | 2<<24}, "dcgmIncidentInfo_t": {structVersion[incident](0) * 64, 0x1050c - 12},
		"dcgmHealthResponse_v5": {structVersion[healthResponse](5), (12 + 1024*structVersion[incident](0)) | 5<<24},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %#x, want %#x", name, tt.got, tt.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:3B:00.0": "0000:3b:00.0", "00000001:3B:00.0": "0001:3b:00.0", "0000:3b:00.0": "0000:3b:00.0", "00010000:3B:00.0": "00010000:3b:00.0", "<<<NULL>>>": "", "": "",
	} {
		if got := address(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	if uuid("<<<NOT_SUPPORTED>>>") != "" || uuid("GPU-1") != "GPU-1" {
		t.Error("uuid")
	}
}

// What a look needs is an interface: any binding will do.
type fakeEngine struct{ err error }

func (f fakeEngine) Connect(address string) (string, error) { return "5.0 at " + address, f.err }
func (f fakeEngine) Look() (dcgm.Health, bool, error)       { return dcgm.Health{Full: true}, true, nil }

func TestAnyEngineWillDo(t *testing.T) {
	h, watched, err := look(fakeEngine{}, "x")
	if !h.Full || h.Version != "5.0 at x" || !watched || err != nil {
		t.Errorf("%+v %v %v", h, watched, err)
	}
	if _, _, err := look(fakeEngine{io.EOF}, "x"); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	if err := Child(&out, Question{Library: "/no/such/libdcgm.so.4"}); err != nil || !strings.Contains(out.String(), `"have":"not_supported"`) {
		t.Errorf("%v: %s", err, out.String())
	}
}
