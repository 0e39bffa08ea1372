// Package etcdtest runs the real etcd, built from go.etcd.io/etcd/server/v3, in processes of its own: for tests that
// kill it, stop it, or need it to outlive the process under test. It listens on unix sockets only, so no two tests can
// want the same port.
package etcdtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
	"github.com/assay-gpu/assay/coordinator/store"
)

// module is the main package of etcd; a tool line in go.mod pins it.
const module = "go.etcd.io/etcd/server/v3"

var build = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-n", module)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
})

// Build builds etcd, once for all tests of a machine (it stays in Go's build cache), and gives the program's path.
func Build(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("build etcd: %v", err)
	}
	return path
}

// A Cluster is one or more etcd members, each a process.
type Cluster struct {
	Endpoints []string // one for each member
	Members   []*Member
}

// A Member is one etcd process, which can be killed and started again on the same data.
type Member struct {
	t      testing.TB
	binary string
	args   []string
	dir    string
	log    string // path
	cmd    *exec.Cmd
	proc   *tether.Process
}

// Start runs a cluster of one member, ready to serve, until the test ends. args are further flags of etcd.
func Start(t testing.TB, args ...string) *Cluster { t.Helper(); return StartN(t, 1, args...) }

// StartN is Start with n members.
func StartN(t testing.TB, n int, args ...string) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("runs etcd")
	}
	binary := Build(t)
	// Not t.TempDir: a long test name would make the socket paths too long for the kernel.
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &Cluster{}
	peers := make([]string, n)
	for i := range n {
		// For peers etcd wants an address with a host in it. It takes the host for the socket's path, from where it runs.
		peers[i] = fmt.Sprintf("m%d=unix://p%d:1", i, i)
	}
	for i := range n {
		client := "unix://" + filepath.Join(dir, fmt.Sprintf("c%d.sock", i))
		_, peer, _ := strings.Cut(peers[i], "=")
		m := &Member{t: t, binary: binary, dir: dir, log: filepath.Join(dir, fmt.Sprintf("m%d.log", i)), args: append([]string{
			"--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i)),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(peers, ","), "--log-level", "warn",
		}, args...)}
		m.Start()
		t.Cleanup(m.Kill)
		c.Endpoints = append(c.Endpoints, client)
		c.Members = append(c.Members, m)
	}
	t.Cleanup(func() {
		for _, m := range c.Members {
			if t.Failed() {
				t.Logf("%s:\n%s", filepath.Base(m.log), m.Log())
			}
		}
	})
	c.WaitReady()
	return c
}

// WaitReady returns once every member answers a linearizable read; the test fails when that takes over 30 s.
func (c *Cluster) WaitReady() {
	for i, m := range c.Members {
		m.t.Helper()
		waitReady(m, c.Endpoints[i])
	}
}

func waitReady(m *Member, endpoint string) {
	m.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		s, err := store.Open(ctx, store.Config{Endpoints: []string{endpoint}})
		cancel()
		if err == nil {
			s.Close()
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("etcd does not serve: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Start starts the process, again after Kill.
func (m *Member) Start() {
	m.t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(m.binary, m.args...)
	m.cmd.Dir = m.dir
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if m.proc, err = tether.Start(m.cmd, syscall.SIGKILL, nil); err != nil { // nothing is left when the test is killed
		m.t.Fatalf("start etcd: %v", err)
	}
}

// Kill ends the process with SIGKILL, if it runs, and waits for it.
func (m *Member) Kill() {
	_ = m.cmd.Process.Kill() // an error says that it has ended
	<-m.proc.Done()
}

// Signal sends the process a signal, SIGSTOP and SIGCONT for instance.
func (m *Member) Signal(sig os.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		m.t.Fatalf("signal etcd: %v", err)
	}
}

// Log is what the process has logged.
func (m *Member) Log() string {
	b, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
