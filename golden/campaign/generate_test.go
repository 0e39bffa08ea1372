package campaign

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The PTX of the workloads is what their sources give.
func TestGeneratingAgainGivesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("../../.ci/golden-generate", dir, "campaign/workloads").CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 127 && os.Getenv("CI") != "true" {
		t.Skipf("clang-19 is not installed, and this is not CI: %s", out)
	}
	if err != nil {
		t.Fatalf("golden-generate: %v\n%s", err, out)
	}
	for _, name := range Workloads {
		got, err := os.ReadFile(filepath.Join(dir, name+".ptx"))
		want, err2 := fs.ReadFile(workloadFiles, "workloads/"+name+".ptx")
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its source gives: run make golden-generate (%v, %v)", name, err, err2)
		}
	}
}
