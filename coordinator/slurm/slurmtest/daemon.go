package slurmtest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
)

// mark is the variable that all processes of a cluster carry.
const mark = "ASSAY_SLURMTEST"

// daemons are the running children, by name: munged, slurmctld, slurmd under its node's name, and with accounting slurmdbd
// and mariadbd.
type daemons struct {
	mu sync.Mutex
	m  map[string]*daemon
}

type daemon struct {
	cmd  *exec.Cmd
	proc *tether.Process
}

func (d *daemons) start(c *Cluster, name string, argv []string, env []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.m[name]; old != nil {
		select {
		case <-old.proc.Done():
		default:
			return fmt.Errorf("%s is running", name)
		}
	}
	path, err := find(argv[0])
	if err != nil {
		return err
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Env = append(c.Env(), env...)
	cmd.Dir = c.Dir
	out, err := os.OpenFile(c.path("log", name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	proc, err := tether.Start(cmd, syscall.SIGKILL, nil) // a killed test leaves nothing behind
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	d.m[name] = &daemon{cmd: cmd, proc: proc} // how it ended is in its log
	return nil
}

// stop sends sig and waits; after ten seconds it kills.
func (d *daemons) stop(name string, sig syscall.Signal) error {
	d.mu.Lock()
	dm := d.m[name]
	d.mu.Unlock()
	if dm == nil {
		return fmt.Errorf("%s was never started", name)
	}
	_ = dm.cmd.Process.Signal(sig) // gone already is as good
	select {
	case <-dm.proc.Done():
	case <-time.After(10 * time.Second):
		_ = dm.cmd.Process.Kill()
		<-dm.proc.Done()
	}
	return nil
}

// stopAll ends the nodes first, all at once, then the controller, then what it stood on.
func (d *daemons) stopAll(c *Cluster) {
	d.mu.Lock()
	names := slices.Collect(maps.Keys(d.m))
	d.mu.Unlock()
	var wg sync.WaitGroup
	for _, n := range names {
		if slices.Contains(c.Nodes, n) {
			wg.Go(func() { _ = d.stop(n, syscall.SIGKILL) })
		}
	}
	wg.Wait()
	for _, n := range []string{"slurmctld", "slurmdbd", "mariadbd", "munged"} {
		if slices.Contains(names, n) {
			_ = d.stop(n, syscall.SIGTERM)
		}
	}
}

// sweep kills what the daemons left behind: step daemons, hooks and jobs, told by the mark in their environment.
func (c *Cluster) sweep() {
	want := []byte(mark + "=" + c.Dir)
	for range 3 {
		found := false
		procs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, p := range procs {
			env, err := os.ReadFile(p)
			if err != nil || !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, want) }) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil && pid != os.Getpid() {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *Cluster) mungedArgs() []string {
	return []string{"munged", "--foreground", "--force", "--num-threads=2", "--key-file=" + c.path("munge.key"), "--socket=" + c.path("munge.sock"),
		"--pid-file=" + c.path("run", "munged.pid"), "--log-file=" + c.path("log", "munged.log"), "--seed-file=" + c.path("munge.seed")}
}

func (c *Cluster) startController() error {
	if err := c.daemons.start(c, "slurmctld", []string{"slurmctld", "-D", "-f", c.Conf}, nil); err != nil {
		return err
	}
	return until(20*time.Second, func() error {
		out, err := c.Try("scontrol", "ping")
		if err == nil && !strings.Contains(out, " UP") {
			err = fmt.Errorf("slurmctld does not answer: %s", strings.TrimSpace(out))
		}
		return err
	})
}

func (c *Cluster) startSlurmd(node string, args ...string) error {
	env := []string{"SLURMD_NODENAME=" + node}
	if c.opts.Env != nil {
		env = append(env, c.opts.Env(node)...)
	}
	return c.daemons.start(c, node, append([]string{"slurmd", "-D", "-f", c.Conf, "-N", node}, args...), env)
}

// StartSlurmd starts a node's slurmd. With "-b" it reports a fresh boot.
func (c *Cluster) StartSlurmd(node string, args ...string) {
	c.t.Helper()
	c.must(c.startSlurmd(node, args...))
}

// StopSlurmd stops a node's slurmd, as a shutdown does.
func (c *Cluster) StopSlurmd(node string) {
	c.t.Helper()
	c.must(c.daemons.stop(node, syscall.SIGTERM))
}

// StartSlurmctld starts the controller and waits until it answers.
func (c *Cluster) StartSlurmctld() {
	c.t.Helper()
	c.must(c.startController())
}

// StopSlurmctld stops the controller; it saves its state.
func (c *Cluster) StopSlurmctld() {
	c.t.Helper()
	c.must(c.daemons.stop("slurmctld", syscall.SIGTERM))
}

// bootTime is how long a boot takes at least. slurmctld counts it in seconds: a slurmd that is back within the second in
// which the reboot was issued can seem to have started before it, and the node waits for its boot for ever.
const bootTime = 1100 * time.Millisecond

// watchReboots acts for the machines: when Slurm has run a node's RebootProgram, its slurmd goes and comes back after a
// boot.
func (c *Cluster) watchReboots() {
	defer close(c.watcher)
	var booting sync.WaitGroup
	defer booting.Wait()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		entries, _ := os.ReadDir(c.path("reboot")) // not there yet, or gone
		for _, e := range entries {
			if os.Remove(c.path("reboot", e.Name())) == nil {
				booting.Go(func() { c.boot(e.Name()) })
			}
		}
	}
}

func (c *Cluster) boot(node string) {
	if err := c.daemons.stop(node, syscall.SIGTERM); err != nil {
		c.t.Logf("slurmtest: reboot: %v", err)
		return
	}
	time.Sleep(bootTime)
	if c.opts.OnReboot != nil {
		c.opts.OnReboot(node)
	}
	if err := c.startSlurmd(node, "-b"); err != nil {
		c.t.Logf("slurmtest: reboot: %v", err)
	}
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("slurmtest: %v", err)
	}
}
