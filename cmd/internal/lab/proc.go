package lab

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
)

// A Proc is one process of the lab with all its children.
type Proc struct {
	cmd  *exec.Cmd
	log  string
	proc *tether.Process
}

func start(log string, env []string, path string, args ...string) (*Proc, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	proc, err := tether.Start(cmd, syscall.SIGKILL, nil)
	if err != nil {
		return nil, err
	}
	return &Proc{cmd: cmd, log: log, proc: proc}, nil
}

// PID is the process's id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Running reports whether the process has not ended.
func (p *Proc) Running() bool {
	select {
	case <-p.proc.Done():
		return false
	default:
		return true
	}
}

// Done is closed when the process has ended.
func (p *Proc) Done() <-chan struct{} { return p.proc.Done() }

// Signal sends a signal to the process alone.
func (p *Proc) Signal(s syscall.Signal) { _ = syscall.Kill(p.PID(), s) }

// Kill sends a signal to the process alone and waits until it has ended.
func (p *Proc) Kill(s syscall.Signal) {
	if !p.Running() {
		return
	}
	p.Signal(s)
	<-p.proc.Done()
}

func (p *Proc) signal(s syscall.Signal) {
	if p.Running() {
		p.Signal(s)
	}
}

// stop waits for the process and then ends what is left of its group.
func (p *Proc) stop(within time.Duration) {
	select {
	case <-p.proc.Done():
	case <-time.After(within):
	}
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.proc.Done()
}

// tail is the end of the process's log, for an error.
func (p *Proc) tail() string {
	if p == nil {
		return "never started"
	}
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}
