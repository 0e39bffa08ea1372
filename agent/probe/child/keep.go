package child

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/assay-gpu/assay/agent/tether"
)

// keeper is the argument that has Become stay above the program, instead of becoming it.
const keeper = "keep"

// keep starts the program below this process, waits for its end, ends what it left behind, and goes as it went. Whatever the
// program starts stays below: a process whose parent has ended becomes this one's child (PR_SET_CHILD_SUBREAPER), also when it
// has a session and a group of its own. It returns only with an error.
func keep(args []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep what it starts: %w", err)
	}
	// The group is told to end; this process ends last. Not ignored: the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	argv := append(append([]string{}, os.Args[:len(os.Args)-len(args)]...), args[1:]...)
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	var went syscall.WaitStatus
	for {
		var status syscall.WaitStatus
		who, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for %d: %w", pid, err)
		}
		if who == pid {
			went = status
			break
		}
	}
	for {
		who, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			break
		}
		if err == nil && who == 0 {
			tether.KillBelow(os.Getpid())
			time.Sleep(time.Millisecond)
		}
	}
	if went.Signaled() {
		dieOf(went.Signal())
	}
	os.Exit(went.ExitStatus())
	return nil
}

// dieOf ends this process by a signal. The runtime's own handlers, which would say more than that, are put aside.
func dieOf(sig syscall.Signal) {
	var action [8]uint64 // a struct sigaction of zeros: the default
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	_ = syscall.Kill(os.Getpid(), sig)
	time.Sleep(time.Second) // it is delivered at once
	os.Exit(128 + int(sig))
}
