package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/golden", "github.com/assay-gpu/assay/golden/kernels", "github.com/assay-gpu/assay/golden/ref")
}

// wrong is a GPU with four SMs whose third is wrong in one kernel, from step 2 on in thread 41.
func wrong(t *testing.T) golden.Result {
	t.Helper()
	k, ok := kernels.Lookup("k01_imad")
	if !ok {
		t.Fatal("no K1")
	}
	s := golden.Stage{
		Kernel: k.ID, Digest: golden.KernelDigest(k), Seed: 7, Code: "jit", Words: 512, Canary: golden.Canary{Tried: true, Seen: true},
		Retests: []golden.Rerun{{Seed: 7, Launch: 2, Wrong: []int{2}}, {Seed: 7, Launch: 3}, {Seed: 7, Launch: 4, Wrong: []int{1, 2}}, {Seed: 9, Launch: 5, Wrong: []int{2}}},
	}
	for i := range 4 {
		s.SMs = append(s.SMs, golden.SM{SM: i, Verified: 1, Warps: 4})
	}
	s.SMs[2] = golden.SM{SM: 2, Warps: 4, Mismatch: &golden.Mismatch{
		Words: 4, Threads: []int{41}, First: golden.Word{Thread: 41, Word: 1, Expected: 0xF0, Got: 0xF1}, Digest: "0123", Reread: true, Inputs: true,
		Where: &golden.Origin{Step: 2, Thread: 41, Partition: 1, Lane: 9, Word: 0, Expected: 0x10, Got: 0x30, Threads: 1},
	}}
	return golden.Result{
		Suite: "prolog", Size: "reduced", Seconds: 1.5, Stages: []golden.Stage{s, {Kernel: "k18_mma_f16", Skip: "needs compute capability 8.0"}},
		GPU: golden.Device{UUID: "GPU-1", Name: "a <GPU> & more", PCI: "0000:1b:00.0", Capability: 75, SMs: 4, Driver: 12040},
	}
}

func k01(t *testing.T) kernels.Kernel {
	t.Helper()
	k, ok := kernels.Lookup("K1")
	if !ok {
		t.Fatal("no K1")
	}
	return k
}

func TestTheReportSaysWhatWhereHowOften(t *testing.T) {
	text := Text(wrong(t), "gpu0.svg")
	for _, want := range []string{
		"# GPU GPU-1: wrong\n",
		"![SMs of the GPU](gpu0.svg)",
		"       0 ..x.\n",
		"## k01_imad on SM 2\n",
		"wrong: 4 of 512 words, in thread 41 (partition 1, lane 9)",
		"expected 000000f0, got 000000f1, differing in 00000001",
		"again: in 2 of 3 reruns with the same seed, in 1 of 1 with others; also wrong then: SMs [1]",
		"where it began: step 2 of 64, partition 1, lane 9 (thread 41); 1 threads wrong after it",
		"result: word 0 after the step: expected 00000010, got 00000030, differing in 00000020",
		"got 0123\n",
		"assay-agent golden run --gpu GPU-1 --replay kernel=k01_imad,code=" + golden.KernelDigest(k01(t)) + ",size=reduced,seed=7,sm=2,step=2,thread=41,word=0,expected=00000010,got=00000030\n",
		"- no single stuck bit of the units that the step uses explains it\n",
		"k18_mma_f16: does not apply: needs compute capability 8.0",
		"k01_imad: 3 of 4 SMs verified",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The operands are the state after as many steps as were right, which one more step turns into what was expected.
func TestOperandsAreTheStateBeforeTheStep(t *testing.T) {
	text := Text(wrong(t), "")
	x := ref.Block("k01_imad", 7, 128, 2)
	var want strings.Builder
	want.WriteString("before that step:")
	for w := range 4 {
		want.WriteString(" " + hex8(x[w*128+41]))
	}
	if !strings.Contains(text, want.String()+"\n") {
		t.Errorf("no %q in\n%s", want.String(), text)
	}
}

func hex8(v uint32) string {
	const digits = "0123456789abcdef"
	var b [8]byte
	for i := range b {
		b[i] = digits[v>>(28-4*i)&15]
	}
	return string(b[:])
}

func TestWhatIsNotKnownIsNotInvented(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(r *golden.Result)
		want   string
	}{
		{"other code", func(r *golden.Result) { r.Stages[0].Digest = "ff" }, "not computed, this program has other code"},
		{"another size", func(r *golden.Result) { r.Size = "huge" }, "not computed, this program has other code"},
		{"a seed without a golden", func(r *golden.Result) { r.Stages[0].Seed = 64 }, "not computed, this program has other code"},
		{"not localised", func(r *golden.Result) { r.Stages[0].SMs[2].Mismatch.Where = nil }, "where it began: not known"},
		{"a step that is none", func(r *golden.Result) { r.Stages[0].SMs[2].Mismatch.Where.Step = 64 }, "where it began: not known"},
		{"a thread that is none", func(r *golden.Result) { r.Stages[0].SMs[2].Mismatch.Where.Thread = 128 }, "where it began: not known"},
		{"an old result", func(r *golden.Result) { r.Stages[0].SMs[2].Mismatch.Digest = "" }, "got not recorded"},
		{"other words when read again", func(r *golden.Result) { r.Stages[0].SMs[2].Mismatch.Reread = false }, "read again from the device: other words; inputs after the run: intact"},
		{"a UUID that would be a command", func(r *golden.Result) { r.GPU.UUID = "x; rm\n -rf 'y" }, `--gpu 'x; rm -rf '\''y' --replay`},
		{"an early end", func(r *golden.Result) { r.Err, r.Blame = "no context", golden.BlameSetup }, "the run: no context (speaks against the setup)"},
		{"nothing at all", func(r *golden.Result) { *r = golden.Result{} }, "not tested\n\nno kernel ran."},
	} {
		r := wrong(t)
		tt.change(&r)
		if text := Text(r, ""); !strings.Contains(text, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.name, tt.want, text)
		}
	}
}

// The PNG shows what the SVG does, at the same places.
func TestThePNGHasTheColoursOfTheSVG(t *testing.T) {
	r := wrong(t)
	b, err := PNG(r)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if w, h := size(4); img.Bounds() != image.Rect(0, 0, w, h) || !strings.Contains(SVG(r), fmt.Sprintf(`width="%d" height="%d"`, w, h)) {
		t.Errorf("%v", img.Bounds())
	}
	for _, s := range SMs(r) {
		x, y := place(s.SM)
		red, green, blue, _ := img.At(x+2, y+side-2).RGBA()
		if got := fmt.Sprintf("#%02x%02x%02x", red>>8, green>>8, blue>>8); got != s.colour() {
			t.Errorf("SM %d is %s, want %s", s.SM, got, s.colour())
		}
	}
	x, y := place(2)
	if c := color.GrayModel.Convert(img.At(x+side-2, y+2)); c != (color.Gray{}) {
		t.Errorf("partition 1 of SM 2 is %v", c)
	}
}

func TestTheFilesOfAReport(t *testing.T) {
	files, err := Files([]golden.Result{wrong(t), wrong(t)}, "golden-")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		if names = append(names, f.Name); len(f.Data) == 0 {
			t.Errorf("%s is empty", f.Name)
		}
	}
	if want := "golden-gpu0.svg golden-gpu0.png golden-gpu1.svg golden-gpu1.png golden-report.md"; strings.Join(names, " ") != want {
		t.Errorf("%v", names)
	}
	if page := string(files[4].Data); strings.Count(page, "(golden-gpu") != 2 {
		t.Errorf("pictures in\n%s", page)
	}
}

func TestThePictureIsOneFileOfItsOwn(t *testing.T) {
	r := wrong(t)
	pic := SVG(r)
	dec, cells := xml.NewDecoder(strings.NewReader(pic)), 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, pic)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "title" {
			cells++
		}
	}
	if cells != 4 || strings.Contains(pic, "href") || strings.Count(pic, `class="partition"`) != 1 {
		t.Errorf("%d SMs in\n%s", cells, pic)
	}
	if strings.Count(pic, "#2e9e5b") != 3 || !strings.Contains(pic, "a &lt;GPU&gt; &amp; more") {
		t.Errorf("colours or names in\n%s", pic)
	}
	r.Stages[0].Canary.Seen = false
	if pic := SVG(r); strings.Contains(pic, "#2e9e5b") || strings.Count(pic, "#b5b5b5") != 3 {
		t.Errorf("SMs are green whose canary was not seen:\n%s", pic)
	}
	r.GPU.SMs = 1 << 40
	if n := len(SMs(r)); n != maxSMs {
		t.Errorf("%d SMs", n)
	}
}
