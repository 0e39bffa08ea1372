package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// kept are the directories, below the lab's own, that hold all there is of a site: the hardware, what each node keeps over
// a restart and over a boot, and the control plane's etcd.
var kept = []string{"hw", "agent", "boot", "assayd"}

// Save ends every process with SIGKILL and copies the site as it stands on disk to dir. Start it again with Restore.
func (l *Lab) Save(dir string) error {
	l.still.Lock()
	defer l.still.Unlock()
	l.killAll()
	return copyDirs(l.opts.Dir, dir)
}

// Restore ends every process with SIGKILL and puts the site back as Save found it. Nothing is started.
func (l *Lab) Restore(dir string) error {
	l.still.Lock()
	defer l.still.Unlock()
	l.killAll()
	if err := copyDirs(dir, l.opts.Dir); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.opts.Nodes {
		l.boots[n] = l.bootID(n)
	}
	return nil
}

// killAll leaves the supervisor nothing to start again.
func (l *Lab) killAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, procs := range []map[string]*Proc{l.agents, l.controls} {
		for name, p := range procs {
			p.Kill(syscall.SIGKILL)
			delete(procs, name)
		}
	}
}

func copyDirs(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, d := range kept {
		if err := os.RemoveAll(filepath.Join(to, d)); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(from, d)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		// cp keeps owners, modes, sockets and holes.
		if out, err := exec.Command("cp", "-a", "--reflink=auto", filepath.Join(from, d), filepath.Join(to, d)).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w: %s", d, err, out)
		}
	}
	return nil
}

// ControlURL is where a control plane serves or will serve, started or not.
func (l *Lab) ControlURL(name string) (string, error) {
	port, err := l.port(name)
	return fmt.Sprintf("https://127.0.0.1:%d", port), err
}

// Ask makes CLI ask that control plane from now on, whichever others run.
func (l *Lab) Ask(control string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = control
}
