package slurm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// gone waits until no process has arg among its arguments.
func gone(t *testing.T, arg string) {
	t.Helper()
	for range 40 {
		found := false
		procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, p := range procs {
			line, err := os.ReadFile(p) // gone meanwhile: empty
			found = found || err == nil && bytes.Contains(line, []byte("\x00"+arg+"\x00"))
		}
		if !found {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("a process with argument %s is still there", arg)
}
