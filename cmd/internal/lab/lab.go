// Package lab runs a whole site on one host: the control plane and any number of nodes with simulated hardware, every one
// of them the real binary in a process of its own. The demo and the end-to-end tests are built on it.
package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Options say what site to run.
type Options struct {
	Bin      string   // directory with assay, assayd, assay-agent, and sim/libnvidia-ml.so.1
	Dir      string   // everything is kept below it; must be short: unix sockets live there
	Nodes    []string // names
	Scenario string   // of the simulated hardware, YAML; empty: healthy H100 nodes
	Policy   string   // YAML; empty: the built-in one
	Control  []string // more flags for assayd
	Env      []string // more environment for assayd
	Agent    []string // more flags for every agent
}

// A Lab is a running site.
type Lab struct {
	opts    Options
	URL     string // of the first control plane
	Sockets string // directory of the hooks' sockets, one a node

	mu       sync.Mutex
	controls map[string]*Proc
	agents   map[string]*Proc
	boots    map[string]string
	closed   bool
	asked    string     // the control plane that CLI asks; empty: the first that runs
	still    sync.Mutex // held while no boot is to be acted upon
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// DefaultScenario is eight healthy GPUs in every node.
func DefaultScenario(nodes []string) string {
	return "model: H100\nnodes: " + strings.Join(nodes, ",") + "\n"
}

// New makes the directories and the simulated hardware. It starts nothing yet.
func New(o Options) (*Lab, error) {
	l := &Lab{opts: o, Sockets: filepath.Join(o.Dir, "run"), controls: map[string]*Proc{}, agents: map[string]*Proc{}, boots: map[string]string{}}
	for _, d := range []string{o.Dir, l.Sockets, filepath.Join(o.Dir, "log")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if o.Scenario == "" {
		o.Scenario = DefaultScenario(o.Nodes)
	}
	file := filepath.Join(o.Dir, "scenario.yaml")
	if err := os.WriteFile(file, []byte(o.Scenario), 0o644); err != nil {
		return nil, err
	}
	sc, err := sim.LoadScenario(file)
	if err != nil {
		return nil, err
	}
	for _, n := range o.Nodes {
		if err := sim.Init(l.Hardware(n), sc, n, filepath.Join(o.Bin, "sim", "libnvidia-ml.so.1")); err != nil {
			return nil, fmt.Errorf("simulated hardware of %s: %w", n, err)
		}
		l.boots[n] = l.bootID(n)
	}
	if o.Policy != "" {
		if err := os.WriteFile(filepath.Join(o.Dir, "policy.yaml"), []byte(o.Policy), 0o644); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.done.Add(1)
	go l.supervise(ctx)
	return l, nil
}

// Hardware is the directory of a node's simulated hardware.
func (l *Lab) Hardware(node string) string { return filepath.Join(l.opts.Dir, "hw", node) }

// Bin is the path of one of the binaries.
func (l *Lab) Bin(name string) string { return filepath.Join(l.opts.Bin, name) }

// StateDir is where a node's agent keeps its identity, certificate, tombstone and spool.
func (l *Lab) StateDir(node string) string { return filepath.Join(l.opts.Dir, "agent", node) }

// RunDir is what a node's agent keeps for one boot.
func (l *Lab) RunDir(node string) string { return filepath.Join(l.opts.Dir, "boot", node) }

// Log is the file that a process writes its log to.
func (l *Lab) Log(name string) string { return filepath.Join(l.opts.Dir, "log", name+".log") }

// StartControl starts a control plane and waits until it answers on its socket. The first is named "assayd".
func (l *Lab) StartControl(ctx context.Context, name string, flags, env []string) error {
	port, err := l.port(name)
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	args := []string{"serve", "--name", name, "--state-dir", filepath.Join(l.opts.Dir, name), "--listen", addr, "--advertise", "https://" + addr,
		"--socket", l.Socket(name)}
	if l.opts.Policy != "" {
		args = append(args, "--policy", filepath.Join(l.opts.Dir, "policy.yaml"))
	}
	args = append(append(args, l.opts.Control...), flags...)
	p, err := start(l.Log(name), append(append(os.Environ(), l.opts.Env...), env...), l.Bin("assayd"), args...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.controls[name] = p
	if l.URL == "" {
		l.URL = "https://" + addr
	}
	l.mu.Unlock()
	return l.await(ctx, p, name+" to answer", func() bool {
		c, err := net.Dial("unix", l.Socket(name))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// Metrics reads a node's agent's metrics, as Prometheus would.
func (l *Lab) Metrics(ctx context.Context, node string) (string, error) {
	port, err := l.port(node)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// port gives each process its own, the same again after a restart.
func (l *Lab) port(name string) (int, error) {
	file := filepath.Join(l.opts.Dir, name+".port")
	if b, err := os.ReadFile(file); err == nil {
		var port int
		_, err := fmt.Sscan(string(b), &port)
		return port, err
	}
	for range 100 {
		// Below the ports that the kernel gives to clients, so that it stays free until it is used.
		port := 17000 + rand.IntN(12000)
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ln.Close()
		return port, os.WriteFile(file, []byte(fmt.Sprint(port)), 0o644)
	}
	return 0, errors.New("no free port on 127.0.0.1 between 17000 and 29000")
}

// Socket is a control plane's socket for operators.
func (l *Lab) Socket(name string) string { return filepath.Join(l.opts.Dir, name+".sock") }

// Control is the process of a control plane; nil if it was never started.
func (l *Lab) Control(name string) *Proc {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.controls[name]
}

// Enrol enrols nodes as an administrator does: a token from the control host, spent on the node.
func (l *Lab) Enrol(ctx context.Context, adopt bool, nodes ...string) error {
	args := []string{"node", "enroll", strings.Join(nodes, ","), "-o", "json"}
	if adopt {
		args = append(args, "--adopt")
	}
	out, err := l.CLI(ctx, args...)
	if err != nil {
		return err
	}
	var tokens []wire.EnrolToken
	if err := json.Unmarshal([]byte(out), &tokens); err != nil {
		return fmt.Errorf("tokens: %w in %q", err, out)
	}
	for _, t := range tokens {
		cmd := exec.CommandContext(ctx, l.Bin("assay-agent"), "enroll", "--token", t.Token, "--state-dir", l.StateDir(t.Node))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("enrol %s: %w: %s", t.Node, err, out)
		}
	}
	return nil
}

// StartAgent starts a node's agent.
func (l *Lab) StartAgent(node string) error {
	self := l.Bin("assay-agent")
	port, err := l.port(node)
	if err != nil {
		return err
	}
	args := []string{"run", "--node", node, "--sim", l.Hardware(node), "--run-dir", l.RunDir(node), "--state-dir", l.StateDir(node),
		"--socket", filepath.Join(l.Sockets, node+".sock"), "--metrics-listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--reboot-command", self + " sim reboot --dir " + l.Hardware(node),
		"--reset-command", self + " sim reset --dir " + l.Hardware(node) + " --gpu {uuid}"}
	p, err := start(l.Log(node), append(os.Environ(), "SLURMD_NODENAME="+node), self, append(args, l.opts.Agent...)...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agents[node] = p
	return nil
}

// Agent is the process of a node's agent; nil if it was never started.
func (l *Lab) Agent(node string) *Proc {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agents[node]
}

// AwaitAgents waits until each agent's socket for the hooks stands.
func (l *Lab) AwaitAgents(ctx context.Context, nodes ...string) error {
	for _, n := range nodes {
		err := l.await(ctx, l.Agent(n), "agent of "+n, func() bool {
			c, err := net.Dial("unix", filepath.Join(l.Sockets, n+".sock"))
			if err == nil {
				c.Close()
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// supervise does what a boot does: when a node's boot id changes, its agent is gone, /run is empty, and systemd starts
// the agent.
func (l *Lab) supervise(ctx context.Context) {
	defer l.done.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		l.still.Lock()
		for _, n := range l.opts.Nodes {
			boot := l.bootID(n)
			l.mu.Lock()
			booted := boot != "" && boot != l.boots[n]
			l.boots[n] = boot
			agent := l.agents[n]
			l.mu.Unlock()
			if !booted || agent == nil {
				continue
			}
			agent.Kill(syscall.SIGKILL)
			_ = os.RemoveAll(l.RunDir(n))
			if err := l.StartAgent(n); err != nil {
				fmt.Fprintln(os.Stderr, "lab: agent of", n, "not started after its boot:", err)
			}
		}
		l.still.Unlock()
	}
}

func (l *Lab) bootID(node string) string {
	b, err := os.ReadFile(filepath.Join(l.Hardware(node), "boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// CLI runs the command line against the first control plane that was started and still runs.
func (l *Lab) CLI(ctx context.Context, args ...string) (string, error) {
	l.mu.Lock()
	socket := l.asked
	for name, p := range l.controls {
		if l.asked == "" && p.Running() && (socket == "" || name < socket) {
			socket = name
		}
	}
	l.mu.Unlock()
	cmd := exec.CommandContext(ctx, l.Bin("assay"), append([]string{"--socket", l.Socket(socket)}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 && errs.Len() == 0 {
			return out.String(), nil // "a fault was found" is an answer
		}
		return out.String(), fmt.Errorf("assay %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// Nodes asks the control plane for all nodes, by name.
func (l *Lab) Nodes(ctx context.Context) (map[string]wire.Node, error) {
	out, err := l.CLI(ctx, "node", "list", "-o", "json")
	if err != nil {
		return nil, err
	}
	var nodes []wire.Node
	if err := json.Unmarshal([]byte(out), &nodes); err != nil {
		return nil, fmt.Errorf("node list: %w in %q", err, out)
	}
	by := map[string]wire.Node{}
	for _, n := range nodes {
		by[n.Name] = n
	}
	return by, nil
}

// Await polls until ok, ctx ends, or it has failed for good.
func (l *Lab) Await(ctx context.Context, what string, ok func(map[string]wire.Node) bool) error {
	var last map[string]wire.Node
	for {
		nodes, err := l.Nodes(ctx)
		if err == nil {
			last = nodes
			if ok(nodes) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last seen: %s", what, context.Cause(ctx), states(last))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func states(nodes map[string]wire.Node) string {
	var out []string
	for name, n := range nodes {
		out = append(out, name+" "+n.State)
	}
	return strings.Join(out, ", ")
}

func (l *Lab) await(ctx context.Context, p *Proc, what string, ok func() bool) error {
	for !ok() {
		if p == nil || !p.Running() {
			return fmt.Errorf("waiting for %s: the process ended: %s", what, p.tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %s", what, context.Cause(ctx), p.tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Close stops every process, agents first, and waits for them. The directory stays.
func (l *Lab) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.done.Wait() // from here on no boot starts another agent
	l.mu.Lock()
	var all []*Proc
	for _, p := range l.agents {
		all = append(all, p)
	}
	for _, p := range l.controls {
		all = append(all, p)
	}
	l.mu.Unlock()
	for _, p := range all {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGTERM)
	}
	for _, p := range all {
		p.stop(3 * time.Second)
	}
}

// Copy writes all logs to w, each line with its process's name, as far as they go now.
func (l *Lab) Copy(w io.Writer) {
	files, _ := filepath.Glob(filepath.Join(l.opts.Dir, "log", "*.log"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(f), ".log")
		for line := range strings.Lines(string(b)) {
			fmt.Fprintf(w, "%s: %s", name, line)
		}
	}
}
