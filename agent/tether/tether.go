// Package tether starts processes whose life hangs on this one's: the kernel signals them when this process ends, however it
// ends.
package tether

import (
	"os/exec"
	"runtime"
	"syscall"
)

// A Process is one that was started, until long after its end.
type Process struct {
	done chan struct{}
	err  error // what Wait gave; read after done
}

// Done is closed when the process has ended and has been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and gives what exec.Cmd's Wait gave. It may be called by anybody, any number of times.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Start starts cmd, which gets the signal death when this process ends, and waits for its end.
//
// The kernel sends that signal when the thread that started the process ends, and Go ends threads while the program goes on.
// So the thread is kept until the process is gone.
//
// Waiting closes the pipes of StdoutPipe and its like. Whoever reads one gives a channel as read, and closes it when all is
// read; else read is nil.
func Start(cmd *exec.Cmd, death syscall.Signal, read <-chan struct{}) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = death
	p, started := &Process{done: make(chan struct{})}, make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if read != nil {
			<-read
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}
