package golden

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/bandwidth"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/corpus"
	"github.com/assay-gpu/assay/golden/fakecuda"
	"github.com/assay-gpu/assay/golden/worker"
)

// The test program is also the child, and the process behind the simulated driver.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) > 4 && os.Args[1] == "sim":
		err = serve(os.Args[4])
	case len(os.Args) > 7 && os.Args[1] == "probe": // probe --library L --suite S --size Z --seed N
		s, serr := golden.LookupSuite(os.Args[5])
		size, zerr := golden.SizeOf(os.Args[7])
		if serr != nil || zerr != nil {
			err = fmt.Errorf("%v, %v", serr, zerr)
			break
		}
		o := worker.Options{Library: os.Args[3], Suite: s, Size: size, Kernels: []string{"k01_imad", "k21_h2d", "k21_d2h"}}
		if i := slices.Index(os.Args, "--corpora"); i > 0 { // --corpora DIR --day DAY
			day, _ := time.Parse(time.DateOnly, os.Args[i+3]) // the runner wrote it
			own, oerr := corpus.Today(os.Args[i+1], day)
			if oerr != nil {
				err = oerr
				break
			}
			o.Own = own
		}
		err = worker.Child(context.Background(), os.Stdout, o)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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

const uuid = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"

func runner(t *testing.T, faults string) *Runner {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(fakecuda.Node{Driver: "550.54.15", GPUs: []fakecuda.GPU{{UUID: uuid, Capability: 90, SMs: 2, Faults: faults}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"node.json": b, "program": []byte(exe)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lib := filepath.Join(dir, "libcuda.so.1")
	if err := fakecuda.Build(lib); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ASSAY_SIM_DIR", dir)
	return New([]string{exe, "probe"}, lib)
}

// of are the findings of one check.
func of(check string, fs []checks.Finding) (out []checks.Finding) {
	for _, f := range fs {
		if f.Check == check {
			out = append(out, f)
		}
	}
	return out
}

func withScreens() policy.Policy {
	p := policy.Default()
	p.Mode, p.Golden.Screen, p.Golden.Size, p.Golden.TrustSimulated, p.Golden.Within = policy.Act, true, "reduced", true, policy.Duration(time.Minute)
	return p
}

var known = checks.Inventory{Node: "gpu001", BootID: "b1", GPUs: []checks.GPU{{UUID: uuid, Index: 0}}}

func TestAScreenFindsAStuckBit(t *testing.T) {
	r := runner(t, `{"v":1,"id":"m","class":"trigger","where":{"sm":1,"part":3,"unit":"imad","lane":7},"when":{"p":1,"b":["0000000f","0000000b"]},"do":{"xor":"00000800"},"seed":1}`)
	look := func(known checks.Inventory, level checks.Level) []checks.Finding {
		fs, _ := r.Look(t.Context(), withScreens(), known, level)
		return of(sdc.ID, fs)
	}
	if fs := look(known, checks.NoLevel); len(fs) != 0 {
		t.Fatalf("found before any screen: %+v", fs)
	}
	fs := look(known, checks.Quick)
	if len(fs) != 1 || !fs[0].HardFault() || fs[0].Subject.SM == nil || *fs[0].Subject.SM != 1 || fs[0].Subject.Node != "gpu001" || fs[0].BootID != "b1" || fs[0].At.IsZero() {
		t.Fatalf("%+v", fs)
	}
	if again := look(known, checks.NoLevel); len(again) != 1 || !again[0].HardFault() {
		t.Errorf("the background forgets: %+v", again)
	}
	twice := known // as an enrolled node knows its GPUs: as accepted, and as seen
	twice.GPUs = append(twice.GPUs, known.GPUs...)
	if fs := look(twice, checks.Quick); len(fs) != 1 {
		t.Errorf("a GPU that is named twice: %+v", fs)
	}
	after := known
	after.BootID = "b2"
	if fs := look(after, checks.NoLevel); len(fs) != 0 {
		t.Errorf("a finding outlives its boot: %+v", fs)
	}
	if err := r.Quiesce(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatAScreenSays(t *testing.T) {
	off := withScreens()
	off.Golden.Screen = false
	unknown := withScreens()
	unknown.Golden.NoLibrary = "unknown"
	missing := func(r *Runner) { r.library = "/nonexistent/libcuda.so.1" }
	for _, tt := range []struct {
		name    string
		policy  policy.Policy
		change  func(*Runner)
		verdict string
		reason  string
	}{
		{"a healthy GPU", withScreens(), nil, "pass", "2 of 2 blocks and 14 of 14 copies verified"},
		{"policy has screens run none", off, nil, "", ""},
		{"no library", withScreens(), missing, "not_applicable", "load /nonexistent"},
		{"no library, and policy wants one", unknown, missing, "unknown", "load /nonexistent"},
		{"a child that breaks", withScreens(), func(r *Runner) { r.child = []string{"/bin/false"} }, "unknown", "ended without a result"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runner(t, "")
			if tt.change != nil {
				tt.change(r)
			}
			fs, _ := r.Look(t.Context(), tt.policy, known, checks.Standard)
			if tt.verdict == "" {
				if len(fs) != 0 {
					t.Errorf("%+v", fs)
				}
				return
			}
			if fs := of(sdc.ID, fs); len(fs) != 1 || fs[0].Verdict.String() != tt.verdict || !strings.Contains(fs[0].Reason, tt.reason) {
				t.Errorf("%+v", fs)
			}
			// The same run says how fast copies are; of a healthy GPU by itself, without sysfs, nobody knows how fast they should be.
			slow := of(bandwidth.ID, fs)
			want := map[string]string{"pass": "not_applicable to the GPU 55."}[tt.verdict]
			if len(slow) != 1 || !strings.HasPrefix(slow[0].Verdict.String()+" "+slow[0].Reason, cmp.Or(want, tt.verdict)) {
				t.Errorf("%+v", slow)
			}
		})
	}
}
