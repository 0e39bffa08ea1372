package main

import (
	"strings"
	"syscall"
)

// bypass reads the file that makes every hook pass, whatever agent and control plane do:
//
//	owner: alice
//	reason: agent upgrade, change 4711
//	expires: 2026-12-01T06:00:00Z
//
// All three are needed, so that a bypass has somebody to ask, a why and an end. on says that it holds; a message
// without it says why the file is ignored. No file, no message.
func bypass(path string) (message string, on bool) {
	data, st, err := readFile(path, 4<<10)
	if err == syscall.ENOENT {
		return "", false
	}
	ignored := func(why string) (string, bool) { return path + " is ignored: " + why, false }
	if err != nil {
		return ignored(reason(err))
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return ignored("it is no regular file")
	}
	if st.Uid != 0 && int(st.Uid) != syscall.Geteuid() || st.Mode&0o002 != 0 {
		return ignored("it must belong to root and not be writable by all")
	}
	var owner, why, expires string
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = clean(strings.TrimSpace(value), 256)
		switch strings.TrimSpace(key) {
		case "owner":
			owner = value
		case "reason":
			why = value
		case "expires":
			expires = value
		}
	}
	if owner == "" || why == "" || expires == "" {
		return ignored("it needs lines owner:, reason: and expires:")
	}
	end, ok := unixTime(expires)
	if !ok {
		return ignored("expires: " + expires + " is no time like 2026-12-01T06:00:00Z")
	}
	var wall syscall.Timeval
	if err := syscall.Gettimeofday(&wall); err != nil {
		return ignored("what time it is: " + reason(err))
	}
	if wall.Sec >= end {
		return ignored("it expired at " + expires + " (" + owner + ": " + why + ")")
	}
	return "bypassed until " + expires + " by " + owner + ": " + why, true
}
