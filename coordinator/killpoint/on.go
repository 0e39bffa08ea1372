//go:build killpoint

// Package killpoint names the moments between two steps at which the process could die. With this tag it appends each
// moment to the file in ASSAY_KILLPOINT_LOG, and dies by SIGKILL at the one that ASSAY_KILLPOINT names, the first time
// that it is reached.
package killpoint

import (
	"os"
	"syscall"
)

// Here marks a moment, as "drain/before".
func Here(name string) {
	if path := os.Getenv("ASSAY_KILLPOINT_LOG"); path != "" {
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(name + "\n")
			_ = f.Close()
		}
	}
	if name == os.Getenv("ASSAY_KILLPOINT") {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}
