package fakecuda

import (
	"bytes"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/cubin"
	"github.com/assay-gpu/assay/golden/kernels"
)

// on gives a server whose current GPU has a capability.
func on(driver string, capability int) *server {
	return &server{node: Node{Driver: driver}, gpus: []GPU{{Capability: capability}}, context: &context{}, loaded: nothing()}
}

// Machine code that is the gate's runs; a bit more or less is a damaged image, and what is for other GPUs is no binary.
func TestMachineCodeIsRunByItsDigest(t *testing.T) {
	k, ok := kernels.Lookup("k18_mma_f16")
	if !ok {
		t.Fatal("no k18_mma_f16")
	}
	code := func(capability int) []byte {
		c, why := cubin.For(k, capability)
		if why != "" {
			t.Fatal(why)
		}
		return c.Image
	}
	img, err := cubin.Inspect(code(80))
	if err != nil {
		t.Fatal(err)
	}
	struck := code(80)
	struck[bytes.Index(struck, img.Functions[k.ID].Text)+20] ^= 4
	for _, tt := range []struct {
		name   string
		driver string
		has    int
		code   []byte
		result int32
		log    string
	}{
		{"its own", "550.54.15", 80, code(80), 0, ""},
		{"an older one of the same family", "550.54.15", 89, code(80), 0, ""},
		{"a newer one of the same family", "550.54.15", 80, code(86), errNoBinary, "capability 86 on a device of capability 80"},
		{"another family's", "550.54.15", 90, code(80), errNoBinary, "capability 80 on a device of capability 90"},
		{"a driver of CUDA 11", "470.82.01", 80, code(80), errImage, "machine code of CUDA 12.4 on a driver of CUDA 11.4"},
		{"a bit of an instruction flipped", "550.54.15", 80, struck, errImage, "knows none for this"},
		{"a byte more", "550.54.15", 80, append(code(80), 0), errImage, "knows none for this"},
		{"its first half", "550.54.15", 80, code(80)[:2000], errImage, "machine code"},
	} {
		s := on(tt.driver, tt.has)
		result, handle, log := s.loadImage(tt.code)
		if result != tt.result || !strings.Contains(string(log), tt.log) {
			t.Errorf("%s: %d, %q", tt.name, result, log)
		}
		if result != 0 {
			continue
		}
		if _, n, _ := s.function(handle, k.ID); n == 0 {
			t.Errorf("%s: no entry", tt.name)
		} else if _, v, _ := s.onFunction(s.funcs[n], request{Call: callGetAttr, Arg: [6]uint64{n, 4}}, nil); int(v) != img.Functions[k.ID].Registers {
			t.Errorf("%s: %d registers", tt.name, v)
		}
	}
}

// A soak loads every kernel again and again: what it unloads is gone.
func TestWhatIsUnloadedIsGone(t *testing.T) {
	k, ok := kernels.Lookup("k18_mma_f16")
	if !ok {
		t.Fatal("no k18_mma_f16")
	}
	s := on("550.54.15", 90)
	for range 20 {
		code, module, _ := s.load(k.Source())
		if code != 0 {
			t.Fatal("load: ", code)
		}
		code, f, _ := s.function(module, k.ID)
		if code != 0 {
			t.Fatal("function: ", code)
		}
		if code := s.unload(module); code != 0 {
			t.Fatal("unload: ", code)
		}
		if code := s.unload(module); code != errHandle {
			t.Errorf("unloaded twice: %d", code)
		}
		if code, _, _ := s.call(request{Call: callGetAttr, Arg: [6]uint64{f, 4}}, nil); code != errHandle {
			t.Errorf("a function of it still answers: %d", code)
		}
	}
	if len(s.modules)+len(s.funcs) > 0 {
		t.Errorf("%d modules and %d functions are left", len(s.modules), len(s.funcs))
	}
}
