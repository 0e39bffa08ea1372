package tether

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// KillBelow kills every process below pid, and gives one that still runs; 0 for none. A process may be starting others
// meanwhile: look again until there is none.
func KillBelow(pid int) (left int) {
	for _, p := range Below(pid) {
		left = p
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
	return left
}

// Below gives every process below pid that has not ended, parents first.
func Below(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		p, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, alive := Parent(p); alive {
			children[parent] = append(children[parent], p)
		}
	}
	var out []int
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		out = append(out, children[todo[0]]...)
		todo = append(todo, children[todo[0]]...)
	}
	return out
}

// Parent gives the parent of a process; false for one that has ended. /proc/PID/stat says: pid (name) state parent.
func Parent(pid int) (parent int, alive bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
		return 0, false
	}
	parent, err = strconv.Atoi(f[1])
	return parent, err == nil
}
