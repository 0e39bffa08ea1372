package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
)

func TestAFolderIsClaimedOnce(t *testing.T) {
	dir := t.TempDir()
	release, err := claim("state directory", dir)
	if err != nil {
		t.Fatal(err)
	}
	var inUse *inUseError
	if _, err := claim("state directory", dir); !errors.As(err, &inUse) {
		t.Fatalf("claimed twice: %v", err)
	}
	// A predecessor that is about to be gone is waited for.
	time.AfterFunc(claimWait/4, release)
	release, err = claim("state directory", dir)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// A second agent on either folder ends with status 1, whatever else it was told.
func TestASecondAgentDoesNotRun(t *testing.T) {
	lib := library(t)
	hw, run, state := t.TempDir(), t.TempDir(), t.TempDir()
	sc, err := sim.ParseScenario("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Init(hw, sc, "gpu001", lib); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{run, state} {
		release, err := claim("folder", dir)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "--sim", hw, "--run-dir", run, "--state-dir", state, "--socket", filepath.Join(t.TempDir(), "s")}
		if code := execute(t.Context(), args); code != exitFault {
			t.Errorf("with %s claimed: exit status %d, want %d", dir, code, exitFault)
		}
		release()
	}
}
