// Package tether starts processes whose life hangs on this one's: the kernel signals them when this process ends, however it
// ends.
package tether

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd, which gets the signal death when this process ends, and waits for its end. Ended gives what Wait gave, and
// is then closed: it may be received from by anybody, any number of times.
//
// The kernel sends that signal when the thread that started the process ends, and Go ends threads while the program goes on.
// So the thread is kept until the process is gone.
//
// Wait closes the pipes of StdoutPipe and its like. Whoever reads one gives a channel as read, and closes it when all is read;
// else read is nil.
func Start(cmd *exec.Cmd, death syscall.Signal, read <-chan struct{}) (ended <-chan error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = death
	started, end := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(end)
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if read != nil {
			<-read
		}
		end <- cmd.Wait()
	}()
	return end, <-started
}
