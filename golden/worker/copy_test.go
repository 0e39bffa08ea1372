package worker

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

// copiesChild runs the copies of the soak, once, and finds sysfs beside the simulated node.
func copiesChild(library string) error {
	s, err := golden.LookupSuite("soak")
	if err != nil {
		return err
	}
	s.Kernels, s.Seeds = nil, 1
	sysfs := filepath.Join(os.Getenv("ASSAY_SIM_DIR"), "sysfs")
	return Child(context.Background(), os.Stdout, Options{Library: library, Suite: s, Size: golden.Reduced, Seed: 11, Sysfs: sysfs})
}

const uuid2 = "GPU-11020304-0506-0708-090a-0b0c0d0e0f10"

// copies runs the copy tests on the first GPU of a node.
func copies(t *testing.T, gpus ...fakecuda.GPU) golden.Result {
	t.Helper()
	p := node(t, fakecuda.Node{Driver: "550.54.15", GPUs: gpus})
	p.Command[1] = "copies"
	for _, g := range gpus {
		p.Others = append(p.Others, g.UUID)
	}
	rs, err := p.Run(t.Context(), p.Others[:1])
	if err != nil {
		t.Fatal(err)
	}
	return rs[0]
}

func stage(t *testing.T, r golden.Result, id string) golden.Stage {
	t.Helper()
	i := slices.IndexFunc(r.Stages, func(s golden.Stage) bool { return s.Kernel == id })
	if i < 0 {
		t.Fatalf("no stage %s: %+v", id, r)
	}
	return r.Stages[i]
}

func other() fakecuda.GPU {
	g := healthy()
	g.UUID, g.PCI, g.NVLinks = uuid2, "0000:43:00.0", true
	return g
}

func TestCopiesOfAHealthyGPUAreVerified(t *testing.T) {
	g := healthy()
	g.NVLinks, g.Bandwidth = true, fakecuda.Bandwidth{Host: 20e9, Own: 1e12, Peer: 100e9}
	r := copies(t, g, other())
	v := golden.Judge(r, simulated)
	if v.Outcome != golden.Verified || v.Copies == 0 || v.Copied != v.Copies || v.Blocks != 0 || !strings.HasSuffix(v.Reason, "copies verified") {
		t.Fatalf("%+v\n%+v", v, r)
	}
	if m := golden.Cover(r); len(m.Copies) != 5 || m.Verified != 5 || m.Cells != 5 || len(m.Rows) != 0 {
		t.Errorf("%+v", m)
	}
	for id, want := range map[string]map[string]float64{
		"k21_h2d": {golden.HostToDevice: 20e9}, "k21_d2h": {golden.DeviceToHost: 20e9}, "k21_both": {golden.HostToDevice: 20e9, golden.DeviceToHost: 20e9},
		"k21_d2d": {golden.DeviceToDevice: 1e12}, "k22_peer": {golden.ToPeer: 100e9, golden.FromPeer: 100e9},
	} {
		s := stage(t, r, id)
		if len(s.Copy.Rates) != len(want) || s.Copy.NoRate != "" || s.Copy.Engines != 3 || s.Copy.Bytes != golden.Reduced.CopyBytes() {
			t.Errorf("%s: %+v", id, s.Copy)
		}
		for _, rate := range s.Copy.Rates {
			w := want[rate.Direction]
			if rate.Samples != golden.CopySamples || rate.Together != (id == "k21_both") || rate.Worst > rate.Median || math.Abs(rate.Median/w-1) > 0.02 || math.Abs(rate.Worst/w-1) > 0.02 {
				t.Errorf("%s: %+v, want %g", id, rate, w)
			}
		}
	}
	if p := stage(t, r, "k22_peer").Copy.Peer; p != uuid2 {
		t.Errorf("peer %q", p)
	}
}

// What copies go through is broken: the tests whose route it is on find it, each time again, and no other does.
func TestFaultsOfCopiesAreFound(t *testing.T) {
	const pcie, engine, link = "k21_h2d k21_d2h k21_both", "k21_h2d k21_d2h k21_both k21_d2d k22_peer", "k22_peer"
	for _, tt := range []struct{ name, fault, found string }{
		{"a stuck bit of the link", `"class":"stuck","where":{"sm":0,"part":0,"unit":"pcie","lane":"all"},"when":{"p":1},"do":{"and":"fffffbff"}`, pcie},
		{"one pattern of twelve bits", `"class":"trigger","where":{"sm":0,"part":0,"unit":"copy_engine","lane":"all"},"when":{"p":1,"a":["00000fff","000005a3"]},"do":{"xor":"00000001"}`, engine},
		{"a write that goes 2 KiB off", `"class":"addr","where":{"sm":0,"part":0,"unit":"copy_engine","lane":"all"},"when":{"p":1,"b":["00001ffc","00001040"]},"do":{"addr_xor":"00000800"}`, engine},
		{"a write that is lost", `"class":"drop","where":{"sm":0,"part":0,"unit":"nvlink","lane":"all"},"when":{"p":1,"b":["000000fc","00000040"]},"do":{}`, link},
		{"a bit that comes late", `"class":"transition","where":{"sm":0,"part":0,"unit":"nvlink","lane":"all"},"when":{"p":0.2},"do":{"xor":"00010000"}`, link},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := healthy()
			g.NVLinks, g.Faults = true, `{"v":1,"id":"f","seed":1,`+tt.fault+`}`
			r := copies(t, g, other())
			v := golden.Judge(r, simulated)
			if v.Outcome != golden.Wrong || !v.Hard || v.SM != golden.NoSM || !strings.Contains(tt.found, v.Kernel) || !strings.Contains(v.Reason, "gave wrong data (") {
				t.Errorf("%+v", v)
			}
			for _, s := range r.Stages {
				w := s.Copy.Wrong
				if (w != nil) != strings.Contains(tt.found, s.Kernel) || s.Err != "" {
					t.Errorf("%s: %+v, %q", s.Kernel, w, s.Err)
				}
				if w != nil && (!w.Reread || !w.Inputs || w.Words < 1 || w.Expected == w.Got || w.Expected^w.Got&^w.Bits == 0 || s.Reproduced(golden.NoSM) < golden.Reruns) {
					t.Errorf("%s: %+v after %+v", s.Kernel, w, s.Retests)
				}
			}
		})
	}
}

// What the SMs that compare get wrong is not held against the copies.
func TestAWrongComparisonIsNoWrongCopy(t *testing.T) {
	g := healthy()
	g.Faults = `{"v":1,"id":"f","class":"stuck","where":{"sm":1,"part":0,"unit":"lop3","lane":3},"when":{"p":1},"do":{"xor":"00000010"},"seed":1}`
	r := copies(t, g)
	if v := golden.Judge(r, simulated); v.Outcome != golden.NotTested {
		t.Errorf("%+v", v)
	}
	g.Faults = `{"v":1,"id":"f","class":"stuck","where":{"sm":1,"part":0,"unit":"lsu_data","lane":3},"when":{"p":1},"do":{"or":"00000010"},"seed":1}`
	if v := golden.Judge(copies(t, g), simulated); v.Outcome == golden.Verified {
		t.Errorf("%+v", v)
	}
}

func TestCopiesThatDoNotApply(t *testing.T) {
	r := copies(t, healthy())
	if s := stage(t, r, "k22_peer"); s.Skip != "this process sees no GPU but its own" || golden.Judge(r, simulated).Outcome != golden.Verified {
		t.Errorf("%+v", s)
	}
	r = copies(t, healthy(), other())
	if s := stage(t, r, "k22_peer"); s.Skip != "it reaches none of the 1 other GPUs without the host" || golden.Judge(r, simulated).Outcome != golden.Verified {
		t.Errorf("%+v", s)
	}
	small := healthy()
	small.Room = 16 << 10
	r = copies(t, small)
	if s := stage(t, r, "k21_h2d"); !strings.Contains(s.Err, "OUT_OF_MEMORY") || r.Err != "" || golden.Judge(r, simulated).Outcome != golden.NotTested {
		t.Errorf("%+v, %q", s, r.Err)
	}
	broken := healthy()
	broken.Error = 220
	if r := copies(t, broken); !strings.Contains(r.Err, "220") || r.Blame != golden.BlameDevice {
		t.Errorf("%+v", r)
	}
}

// While one measures, no other copies; verifying is done side by side.
func TestTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turn")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(turnEnv, path)
	a, b := openTurn(), openTurn()
	defer a.close()
	defer b.close()
	a.wait, b.wait = 20*time.Millisecond, 20*time.Millisecond
	one, two := a.with(), b.with()
	if _, err := b.alone(); err == nil || !strings.Contains(err.Error(), "other GPUs' copies did not end within 20ms") {
		t.Errorf("alone beside another: %v", err)
	}
	one()
	two()
	release, err := b.alone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.alone(); err == nil {
		t.Error("two at once")
	}
	release()
	if release, err := a.alone(); err != nil {
		t.Error(err)
	} else {
		release()
	}
	var none turn
	if release, err := none.alone(); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-2,64-65": {0, 1, 2, 64, 65}, "8191": {8191}} {
		s, ok := parseCPUs(text)
		var got []int
		for c := range 64 * cpuWords {
			if s[c/64]>>(c%64)&1 != 0 {
				got = append(got, c)
			}
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "a", "3-1", "0-8192", "-1", "1,,2"} {
		if _, ok := parseCPUs(text); ok {
			t.Errorf("%q is a list", text)
		}
	}
}

func TestReadLink(t *testing.T) {
	root := t.TempDir()
	at := filepath.Join(root, "devices/pci0000:15/0000:15:01.0")
	for name, text := range map[string]string{
		"0000:16:00.0/current_link_speed": "2.5 GT/s PCIe\n", "0000:16:00.0/current_link_width": "8\n", "0000:16:00.0/max_link_speed": "32.0 GT/s PCIe\n",
		"0000:16:00.0/max_link_width": "16\n", "max_link_speed": "16.0 GT/s PCIe\n", "max_link_width": "255\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "bus/pci/devices"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0", filepath.Join(root, "bus/pci/devices/0000:16:00.0")); err != nil {
		t.Fatal(err)
	}
	if l := readLink(root, "0000:16:00.0"); l == nil || *l != (golden.Link{Gen: 1, Width: 8, MaxGen: 5, MaxWidth: 16, PortGen: 4}) {
		t.Errorf("%+v", l)
	}
	if l := readLink(root, "0000:17:00.0"); l != nil {
		t.Errorf("%+v", l)
	}
}
