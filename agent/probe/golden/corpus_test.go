package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/sdc"
)

// A screen runs the corpus of the day after its suite. What catches a device there is kept, and runs whatever the corpus.
func TestAScreenRunsTheCorpusOfTheDay(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "3"), os.DirFS("../../../cmd/assay-agent/testdata/corpora/3")); err != nil {
		t.Fatal(err)
	}
	// A shuffle right after a barrier goes wrong: no kernel of the suite has those two in that order.
	r := runner(t, `{"v":1,"id":"sb","class":"trigger","where":{"sm":1,"part":1,"unit":"shuffle","lane":9},"when":{"p":1,"prev_op":"bar"},"do":{"xor":"00000400"},"seed":1}`)
	p := withScreens()
	look := func() checks.Finding {
		t.Helper()
		fs, _ := r.Look(t.Context(), p, known, checks.Quick)
		if fs = of(sdc.ID, fs); len(fs) != 1 {
			t.Fatalf("%+v", fs)
		}
		return fs[0]
	}
	if f := look(); f.Verdict != checks.Pass || strings.Contains(f.Evidence, "corpus") {
		t.Fatalf("without corpora: %+v", f)
	}
	p.Golden.Corpora = filepath.Join(dir, "none")
	if f := look(); f.Verdict != checks.Pass || !strings.Contains(f.Reason, "; no corpus ran: ") {
		t.Errorf("a folder that is not there costs its programs, not the run, and is said: %+v", f)
	}
	p.Golden.Corpora = dir
	if f := look(); f.Verdict != checks.Fail || !strings.Contains(f.Reason, "c70_5d19f1cbd255 gave a wrong result on SM 1") || !strings.Contains(f.Evidence, "corpus=") {
		t.Fatalf("%+v", f)
	}
	if _, err := os.Stat(filepath.Join(dir, "kept", "c70_5d19f1cbd255.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "3")); err != nil {
		t.Fatal(err)
	}
	if f := look(); f.Verdict != checks.Fail || !strings.Contains(f.Reason, "c70_5d19f1cbd255") || !strings.Contains(f.Evidence, "corpus=kept") {
		t.Errorf("without its corpus: %+v", f)
	}
}
