package kernels

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The PTX that is committed is what the sources give.
func TestGeneratingAgainGivesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("../../.ci/golden-generate", dir).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 127 && os.Getenv("CI") != "true" {
		t.Skipf("clang-19 is not installed, and this is not CI: %s", out)
	}
	if err != nil {
		t.Fatalf("golden-generate: %v\n%s", err, out)
	}
	made, err := filepath.Glob(dir + "/*.ptx")
	if err != nil || len(made) != len(all)+1 { // and that of the copy tests
		t.Fatalf("%d files made for %d kernels: %v", len(made), len(all), err)
	}
	for _, f := range made {
		got, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Base(f))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what its source gives: run make golden-generate", filepath.Base(f))
		}
	}
}

func TestEveryKernelStatesWhatItIs(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		if seen[k.ID] || seen[k.Rule] {
			t.Errorf("%s: twice", k.ID)
		}
		seen[k.ID], seen[k.Rule] = true, true
		for what, s := range map[string]string{"Unit": k.Unit, "Does": k.Does, "Exact": k.Exact, "Blind": k.Blind, "Probe": k.Probe} {
			if s == "" {
				t.Errorf("%s: %s is not said", k.ID, what)
			}
		}
		if k.Words < 1 || k.Steps < 1 || k.MinCC < 70 || len(k.SASS) == 0 {
			t.Errorf("%s: %d words, %d steps, capability %d, %d opcodes", k.ID, k.Words, k.Steps, k.MinCC, len(k.SASS))
		}
		src := k.Source()
		for _, want := range []string{".version " + k.PTX, ".target " + k.Target, ".entry " + k.ID + "(", k.Probe + " "} {
			if !strings.Contains(src, want) {
				t.Errorf("%s.ptx has no %q", k.ID, want)
			}
		}
	}
}
