package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/golden"
)

// A GPU that computed wrong numbers has a page and a map of its SMs among a case's files; one that did not has none.
func TestWrongNumbersArePictured(t *testing.T) {
	result := func(uuid string, wrong bool) golden.Result {
		s := golden.Stage{Kernel: "k01_imad", Words: 512, Canary: golden.Canary{Tried: true, Seen: true}, SMs: []golden.SM{{SM: 0, Verified: 1, Warps: 4}}}
		if wrong {
			s.SMs[0] = golden.SM{SM: 0, Warps: 4, Mismatch: &golden.Mismatch{Words: 1, Threads: []int{3}, Reread: true, Inputs: true}}
		}
		return golden.Result{Suite: "prolog", Size: "reduced", Stages: []golden.Stage{s}, GPU: golden.Device{UUID: uuid, SMs: 1, Capability: 90}}
	}
	read := &catalog.GoldenRead{Results: map[string]sdc.Reading{}}
	add := func(uuid string, wrong bool) {
		read.GPUs = append(read.GPUs, checks.GPU{UUID: uuid})
		read.Results[uuid] = sdc.Reading{Have: checks.Read, Result: result(uuid, wrong)}
	}
	add("GPU-good", false)
	dir := t.TempDir()
	for _, none := range []*catalog.GoldenRead{nil, read} {
		if refs, err := goldenPage(dir, none); err != nil || len(refs) != 0 {
			t.Errorf("%v, %v", refs, err)
		}
	}
	add("GPU-bad", true)
	refs, err := goldenPage(dir, read)
	if err != nil || len(refs) != 3 || len(refs["golden-report.md"]) != 64 || refs["golden-gpu0.svg"] == "" || refs["golden-gpu0.png"] == "" {
		t.Fatalf("%v, %v", refs, err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "golden-report.md"))
	if err != nil || !strings.Contains(string(page), "# GPU GPU-bad: wrong") || strings.Contains(string(page), "GPU-good") {
		t.Errorf("%v\n%s", err, page)
	}
	for i := range maxPictured + 3 {
		add("GPU-"+strings.Repeat("x", i+1), true)
	}
	if refs, err := goldenPage(dir, read); err != nil || len(refs) != 2*maxPictured+1 {
		t.Errorf("%d files, %v", len(refs), err)
	}
}
