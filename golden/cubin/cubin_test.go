package cubin

import (
	"bytes"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
)

func k01(t *testing.T) kernels.Kernel {
	t.Helper()
	k, ok := kernels.Lookup("K1")
	if !ok {
		t.Fatal("no K1")
	}
	return k
}

// What a GPU's driver will say of the code is what the record says: the gate has looked at this very code.
func TestEveryKernelHasTheMachineCodeThatWasAudited(t *testing.T) {
	for _, k := range kernels.All() {
		for _, target := range Targets(k) {
			c, why := For(k, target.Capability)
			if why != "" {
				t.Errorf("%s for %s: %s: run make golden-cubins", k.ID, target.Name, why)
				continue
			}
			img, err := Inspect(c.Image)
			f := img.Functions[k.ID]
			if err != nil || img.Capability != target.Capability || img.Exact != strings.HasSuffix(target.Name, "a") || f.Registers != c.Registers || f.Shared != c.Shared || f.Local != 0 || len(f.Text) == 0 {
				t.Errorf("%s for %s: %+v with %d registers, %d and %d bytes; record %+v; %v", k.ID, target.Name, img.Capability, f.Registers, f.Shared, f.Local, c.Row, err)
			}
			if row, ok := Of(Digest(c.Image)); !ok || row != c.Row {
				t.Errorf("%s for %s is not found by its digest", k.ID, target.Name)
			}
			for _, a := range Assemblers {
				if row, ok := Lookup(k.ID, a, target.Name); ok != Takes(a, k) || ok && (row.PTX != Digest([]byte(k.Source())) || row.Spilled != 0) {
					t.Errorf("%s for %s by ptxas %s: recorded %t, %+v", k.ID, target.Name, a, ok, row)
				}
			}
		}
	}
}

func TestWithoutMachineCodeThereIsAReason(t *testing.T) {
	mine := k01(t)
	mine.Code = mine.Source()
	other := k01(t)
	other.ID = "k99_none"
	for _, tt := range []struct {
		name       string
		k          kernels.Kernel
		capability int
		want       string
	}{
		{"a newer GPU", k01(t), 100, "no machine code is shipped for compute capability 10.0"},
		{"a board whose code is of another family", k01(t), 87, "no machine code is shipped for compute capability 8.7"},
		{"a program of a corpus", mine, 90, "programs of a corpus"},
	} {
		if _, why := For(tt.k, tt.capability); !strings.Contains(why, tt.want) {
			t.Errorf("%s: %q", tt.name, why)
		}
	}
	other.Code = ""
	if _, ok := Lookup(other.ID, Shipped, "sm_90"); ok {
		t.Error("a kernel that there is not has a record")
	}
}

func TestOneBitMakesItOtherCode(t *testing.T) {
	c, why := For(k01(t), 80)
	if why != "" {
		t.Fatal(why)
	}
	img, err := Inspect(c.Image)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(c.Image, img.Functions["k01_imad"].Text)
	c.Image[at+64] ^= 1
	if _, ok := Of(Digest(c.Image)); ok {
		t.Error("code with a bit flipped is found by its digest")
	}
	for _, n := range []int{0, 3, 16, 63, 64, 200, len(c.Image) / 2} {
		if img, err := Inspect(c.Image[:n]); err == nil && len(img.Functions) > 0 && img.Functions["k01_imad"].Registers == 0 {
			t.Errorf("the first %d bytes are read as %+v", n, img)
		}
	}
}

func TestAnArchiveGivesBackWhatWasPutIn(t *testing.T) {
	packed, err := Pack([]string{"sm_70", "sm_90a"}, [][]byte{[]byte("seventy"), []byte("ninety")})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Unpack(packed, "sm_90a"); err != nil || string(b) != "ninety" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Unpack(packed, "sm_90"); err == nil || !strings.Contains(err.Error(), "none for sm_90") {
		t.Errorf("%v", err)
	}
	if _, err := Unpack(packed[:20], "sm_70"); err == nil {
		t.Error("half an archive is read")
	}
}

func TestARecordIsReadAsItIsWritten(t *testing.T) {
	for _, r := range Rows() {
		if got, err := Parse(r.String() + "\n"); err != nil || len(got) != 1 || got[0] != r {
			t.Fatalf("%+v, %v, want %+v", got, err, r)
		}
	}
	for _, text := range []string{"k\tp\t12.4\n", strings.Repeat("x\t", 10) + "x\n"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func FuzzInspect(f *testing.F) {
	k, _ := kernels.Lookup("K1")
	if c, why := For(k, 90); why == "" {
		f.Add(c.Image)
	}
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = Inspect(b) })
}
