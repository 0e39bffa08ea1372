package e2e

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// staysUp has reboots begin and never happen, so that the story can look at the boot of the fault.
func staysUp() options {
	return options{policy: fast("", ""), agent: []string{"--reboot-command", "true"}}
}

// The agent is killed with -9 again and again while it writes down what the kernel log says and nobody takes its reports.
// Nothing is lost: when the control plane answers again it knows every fault.
func TestKilledWhileSpooling(t *testing.T) {
	s := plain(t, staysUp(), "gpu001")
	s.Control("assayd").Signal(syscall.SIGSTOP)
	want := map[string]bool{}
	// One fault a GPU: further ones on the same GPU would be the same incident, and count once.
	for round := range 4 {
		for i, code := range []int{46, 119} {
			gpu := 2*round + i
			want[fmt.Sprintf("xid %d GPU %d", code, gpu)] = true
			if err := sim.XID(s.Hardware("gpu001"), gpu, code, ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		s.restart("gpu001")
	}
	s.Control("assayd").Signal(syscall.SIGCONT)

	n := s.awaitNode("gpu001", "cased", cased)
	have := map[string]bool{}
	defer func() {
		for w := range want {
			if !have[w] {
				t.Errorf("%s is not known to the control plane", w)
			}
		}
	}()
	s.until("every fault is known to the control plane", func() bool {
		for _, f := range s.caseOf(n.Case).Findings {
			if f.Subject.GPUIndex != nil {
				have[fmt.Sprintf("xid %d GPU %d", f.Code, *f.Subject.GPUIndex)] = true
			}
		}
		for w := range want {
			if !have[w] {
				return false
			}
		}
		return true
	})
	s.until("no report waits", func() bool { return s.metric("gpu001", "assay_spool_reports") == 0 })
}

// A socket left by a killed agent is taken over; a second agent on the same folders ends at once and does the first no harm.
func TestSocketLeftOverAndTaken(t *testing.T) {
	s := plain(t, options{policy: fast("", "")}, "gpu001")
	sock := filepath.Join(s.Sockets, "gpu001.sock")
	s.Agent("gpu001").Kill(syscall.SIGKILL)
	if _, err := os.Stat(sock); err != nil {
		t.Fatalf("a killed agent leaves its socket: %v", err)
	}
	s.startAgent("gpu001")
	first := s.Agent("gpu001")
	if a := s.ask("gpu001", "prolog"); a.exit != 0 {
		t.Errorf("prolog %+v", a)
	}

	if err := s.StartAgent("gpu001"); err != nil { // the lab forgets the first
		t.Fatal(err)
	}
	second := s.Agent("gpu001")
	defer first.Kill(syscall.SIGTERM)
	select {
	case <-second.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("a second agent on the same folders runs")
	}
	if log, err := os.ReadFile(s.Log("gpu001")); err != nil || !strings.Contains(string(log), "another agent runs on it") {
		t.Errorf("the second agent does not say why it ended: %v", err)
	}
	if a := s.ask("gpu001", "epilog"); !first.Running() || a.exit != 0 {
		t.Errorf("after the second agent: the first runs %v, epilog %+v", first.Running(), a)
	}
}

// The state directory is on a disk of 256 KiB that is full, then read-only. Hooks answer all the same, a fault voids the
// certificate and is told, and an agent started on such a disk runs.
func TestStateDirectoryFullAndReadOnly(t *testing.T) {
	s := unenrolled(t, options{policy: fast("", "")}, "gpu001")
	dir := s.StateDir("gpu001")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := func(flags uintptr, data string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, data); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("mount a tmpfs: %v: CI must be able to", err)
			}
			t.Skipf("mount a tmpfs: %v", err)
		}
	}
	mount(0, "size=256k")
	t.Cleanup(func() {
		s.Close()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s.startAgent("gpu001")
	s.certify("gpu001")
	before := s.awaitNode("gpu001", "healthy", healthy)

	fill := filepath.Join(dir, "filler")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	f.Close()
	if a := s.ask("gpu001", "prolog"); a.exit != 0 || a.said != "" {
		t.Errorf("full: prolog %+v; want it to pass on the certificate", a)
	}
	s.ask("gpu001", "epilog")
	s.restart("gpu001")
	if a := s.ask("gpu001", "prolog"); a.exit != 0 {
		t.Errorf("full, started anew: prolog %+v", a)
	}
	s.ask("gpu001", "epilog")
	// A fault that nothing but the kernel log shows, no disk to note it on, nobody to tell, and the agent killed: the next one
	// reads it anew, and no hook passes on the certificate.
	s.Control("assayd").Signal(syscall.SIGSTOP)
	if err := sim.XID(s.Hardware("gpu001"), 3, 79, ""); err != nil {
		t.Fatal(err)
	}
	s.until("the certificate is void on the node", func() bool { return strings.Contains(s.ask("gpu001", "healthcheck").said, "void") })
	s.restart("gpu001")
	s.until("the kernel log is read", func() bool { return s.metric("gpu001", "assay_kmsg_records_total") > 0 })
	if a := s.ask("gpu001", "prolog"); a.exit != 1 || !strings.Contains(a.said, "xid 79") {
		t.Errorf("full, a fault, started anew: prolog %+v; want exit 1, for the fault", a)
	}
	s.Control("assayd").Signal(syscall.SIGCONT)
	n := s.awaitNode("gpu001", "cased", func(n wire.Node) bool { return n.Case != "" })
	if c := s.caseOf(n.Case); c.Cause != "xid 79" {
		t.Errorf("case of %s; want the lost GPU", c.Cause)
	}

	// Room again: the node comes back by itself.
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	s.awaitNode("gpu001", "healthy again", func(n wire.Node) bool { return healthy(n) && n.Certificate.Serial > before.Certificate.Serial })

	mount(syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	if a := s.ask("gpu001", "prolog"); a.exit != 0 {
		t.Errorf("read-only: prolog %+v", a)
	}
	s.ask("gpu001", "epilog")
	s.restart("gpu001")
	if a := s.ask("gpu001", "prolog"); a.exit != 0 {
		t.Errorf("read-only, started anew: prolog %+v", a)
	}
	s.ask("gpu001", "epilog")
	s.await("the node heard from", heardFrom([]string{"gpu001"}))
	mount(syscall.MS_REMOUNT, "size=256k")
}

// A million XID lines come at once. Memory stays bounded, reports are few, and the control plane has the state right.
func TestKernelLogFlood(t *testing.T) {
	const lines = 1_000_000
	s := plain(t, staysUp(), "gpu001")
	hw := s.Hardware("gpu001")
	st, err := sim.Read(hw)
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.hist("gpu001"))
	f, err := os.OpenFile(sim.In(hw).Kmsg, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	most := 0
	for i := range lines {
		g := st.GPUs[i%8]
		// An application's fault on every GPU, again and again, and one of the hardware in the middle of it all.
		text := fmt.Sprintf("NVRM: Xid (PCI:%s): 31, pid=%d, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS", strings.TrimSuffix(g.PCI, ".0"), 4000+i)
		if i == lines/2 {
			text = fmt.Sprintf("NVRM: Xid (PCI:%s): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", strings.TrimSuffix(st.GPUs[2].PCI, ".0"))
		}
		// The simulated log's first record has number 0.
		fmt.Fprintf(w, "3,%d,%d,-;%s\n", i+1, i+1, text)
		if i%50_000 == 0 {
			most = max(most, s.rss("gpu001"))
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s.until("the whole flood is read", func() bool {
		most = max(most, s.rss("gpu001"))
		return s.metric("gpu001", "assay_kmsg_records_total") > lines
	})
	t.Logf("read to its end %v after its last line; at most %d MiB resident", time.Since(begun).Round(time.Millisecond), most>>20)
	if most > 60<<20 {
		t.Errorf("%d MiB resident; want at most 60", most>>20)
	}
	if lost, bad := s.metric("gpu001", "assay_kmsg_lost_total"), s.metric("gpu001", "assay_kmsg_malformed_total"); lost != 0 || bad != 0 {
		t.Errorf("%v records lost, %v malformed", lost, bad)
	}
	n := s.awaitNode("gpu001", "cased", func(n wire.Node) bool { return n.Case != "" })
	c := s.caseOf(n.Case)
	if c.Cause != "xid 79" || len(c.Findings) == 0 || c.Findings[0].Subject.GPUIndex == nil || *c.Findings[0].Subject.GPUIndex != 2 {
		t.Errorf("case of %s with %+v; want xid 79 on GPU 2 alone", c.Cause, c.Findings)
	}
	for _, f := range c.Findings {
		if f.Verdict == checks.Fail && f.Code == 31 {
			t.Errorf("an application's fault is in the case: %+v", f)
		}
	}
	// Application faults are no event of the node's life; the fault and its remedy are a few.
	if h := len(s.hist("gpu001")); h-before > 40 {
		t.Errorf("%d entries of history for one fault in a flood", h-before)
	}
}

// An agent that is told to stop is gone within five seconds, and its children with it, whatever it is in the middle of.
func TestStopsWithinFiveSeconds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		begin func(s *site) (after func())
	}{
		{"at rest", func(*site) func() { return func() {} }},
		{"while a GPU hangs", func(s *site) func() {
			s.set("gpu001", 2, map[string]string{"hang": "all"})
			time.Sleep(1500 * time.Millisecond)
			return func() { s.set("gpu001", 2, map[string]string{"hang": ""}) }
		}},
		{"while nvmlInit hangs, a moment after the start", func(s *site) func() {
			s.set("gpu001", -1, map[string]string{"init": "hang"})
			s.restart("gpu001")
			return func() { s.set("gpu001", -1, map[string]string{"init": ""}) }
		}},
		{"while a hook waits for an answer", func(s *site) func() {
			s.set("gpu001", 2, map[string]string{"hang": "all"})
			done := make(chan answer, 1)
			s.restart("gpu001")
			go func() { done <- s.ask("gpu001", "prolog") }()
			time.Sleep(500 * time.Millisecond)
			return func() {
				if a := <-done; a.exit != 0 {
					s.t.Errorf("the hook that waited got %+v", a)
				}
				s.set("gpu001", 2, map[string]string{"hang": ""})
			}
		}},
		{"while the control plane does not answer", func(s *site) func() {
			s.Control("assayd").Signal(syscall.SIGSTOP)
			time.Sleep(1500 * time.Millisecond)
			return func() { s.Control("assayd").Signal(syscall.SIGCONT) }
		}},
		{"in the first moment of its life", func(s *site) func() {
			s.Agent("gpu001").Kill(syscall.SIGTERM)
			if err := s.StartAgent("gpu001"); err != nil {
				s.t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond)
			return func() {}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := plain(t, options{policy: fast("", "hooks:\n  snapshot_age: 1s\n")}, "gpu001")
			after := tt.begin(s)
			p := s.Agent("gpu001")
			begun := time.Now()
			p.Signal(syscall.SIGTERM)
			select {
			case <-p.Done():
			case <-time.After(15 * time.Second):
				t.Fatal("it still runs after 15 s")
			}
			if took := time.Since(begun); took > 5*time.Second+500*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			s.until("no child is left", func() bool { return len(probesOf(t, s.Hardware("gpu001"))) == 0 })
			if took := time.Since(begun); took > 6*time.Second {
				t.Errorf("its children took %v", took)
			}
			after()
		})
	}
}

// probesOf lists the probe processes that read the simulated node in hw.
func probesOf(t *testing.T, hw string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), "\x00probe\x00") && strings.Contains(string(b), hw) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// rss is how much of an agent itself is resident, in bytes.
func (s *site) rss(node string) int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Agent(node).PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		s.t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// metric is the sum of a metric's series on a node; 0 when there is none.
func (s *site) metric(node, name string) (sum float64) {
	s.t.Helper()
	m, err := s.Metrics(s.ctx(), node)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(m) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}
