//go:build killpoint

// Package killpoint names the moments between two steps at which the process could die. With this tag it appends each
// moment to the file in ASSAY_KILLPOINT_LOG, and dies by SIGKILL at the first that ASSAY_KILLPOINT, a list separated by
// commas, names; the last line of the log is then "killed " and the moment.
package killpoint

import (
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Enabled says whether this build can die at its moments, for callers whose names take work to make.
const Enabled = true

var (
	log    = os.Getenv("ASSAY_KILLPOINT_LOG")
	deadly = strings.Split(os.Getenv("ASSAY_KILLPOINT"), ",")
	mu     sync.Mutex // what is logged after "killed" would be a lie
)

// Here marks a moment, as "drain/before".
func Here(name string) {
	mu.Lock()
	defer mu.Unlock()
	note(name)
	if slices.Contains(deadly, name) && name != "" {
		note("killed " + name)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

func note(line string) {
	if log == "" {
		return
	}
	if f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.WriteString(line + "\n")
		_ = f.Close()
	}
}
