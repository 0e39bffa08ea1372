package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/assay-gpu/assay/agent/tether"
)

// killAll is the signal that has a keeper kill all that is below it; SIGTERM it hands on to all of them.
const killAll = syscall.SIGUSR1

// A kept is what a keeper is asked to start. The environment is the keeper's own.
type kept struct {
	Argv   []string `json:"argv"`
	Dir    string   `json:"dir"`
	Switch bool     `json:"switch"` // to the account below
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// keeperOf is the keeper of a rank: a process of the agent's own user, which no process of the job's can end.
func keeperOf(command []string, k kept) (*exec.Cmd, error) {
	ask, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	return exec.Command(command[0], append(append([]string{}, command[1:]...), string(ask))...), nil
}

// Keep is the keeper's side. It starts one rank, stays above all that this starts, and ends when the last of it is gone, with
// the rank's exit status as a shell tells it. A process whose parent has ended becomes the keeper's child
// (PR_SET_CHILD_SUBREAPER), also one with a session of its own. What the rank leaves behind at its end is killed; and all of it
// when the agent ends, however it ends.
//
// An error comes back before anything runs; the agent reads it from descriptor 3.
func Keep(ask string) error {
	syscall.CloseOnExec(3)
	told := os.NewFile(3, "started")
	err := keep(ask, told)
	fmt.Fprint(told, err)
	return err
}

func keep(ask string, told *os.File) error {
	var k kept
	if err := json.Unmarshal([]byte(ask), &k); err != nil || len(k.Argv) == 0 {
		return fmt.Errorf("what to start: %q: %v", ask, err)
	}
	// The rank's death signal hangs on the thread that starts it.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep what it starts: %w", err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, killAll)
	attr := &syscall.ProcAttr{Dir: k.Dir, Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}
	if k.Switch {
		attr.Sys.Credential = &syscall.Credential{Uid: k.UID, Gid: k.GID, Groups: k.Groups}
	}
	syscall.Umask(0o022) // the agent's own is closer
	back := expendable()
	pid, err := syscall.ForkExec(k.Argv[0], k.Argv, attr)
	back()
	if err == syscall.EPERM && k.Switch {
		return fmt.Errorf("become user %d: %w; the agent's unit needs assay-agent-jobs.conf beside it (documentation: jobs)", k.UID, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", k.Argv[0], err)
	}
	_ = told.Close()
	var killing atomic.Bool
	go func() {
		for s := range signals {
			if s == killAll {
				killing.Store(true)
				break
			}
			for _, p := range tether.Below(os.Getpid()) {
				_ = syscall.Kill(p, syscall.SIGTERM)
			}
		}
		for tether.KillBelow(os.Getpid()); ; tether.KillBelow(os.Getpid()) {
			time.Sleep(10 * time.Millisecond) // one may have been starting another, or hang in the driver
		}
	}()
	code := 0
	for {
		var status syscall.WaitStatus
		who, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			os.Exit(code)
		case err != nil:
			return fmt.Errorf("wait for %d: %w", pid, err)
		case who == pid:
			if code = status.ExitStatus(); status.Signaled() {
				code = 128 + int(status.Signal())
			}
			if !killing.Load() {
				signals <- killAll
			}
		}
	}
}

// expendable has what is started before back is called be as good a choice as any for the kernel when memory runs out: an agent
// is kept from it by its unit, and a job that eats the node's memory must not be.
func expendable() (back func()) {
	const file = "/proc/self/oom_score_adj"
	was, err := os.ReadFile(file)
	if err != nil {
		return func() {}
	}
	if n, err := strconv.Atoi(string(was[:max(len(was)-1, 0)])); err != nil || n >= 0 {
		return func() {}
	}
	_ = os.WriteFile(file, []byte("0"), 0)
	return func() { _ = os.WriteFile(file, was, 0) } // refused without CAP_SYS_RESOURCE: then the keeper is expendable too
}
