package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// junk is what a state file may hold after a bad disk or a careless hand.
var junk = map[string]string{
	"empty":             "",
	"torn":              `{"serial":5,"rea`,
	"not JSON":          "\x00\x00\x00\x00",
	"null":              "null",
	"an empty object":   "{}",
	"another type":      `[1,2,3]`,
	"wrong field types": `{"serial":"five","boot_id":7,"desired":[],"gpus":"none","seq":"x","reason":3}`,
	"trailing bytes":    `{"serial":5,"reason":"xid 79","boot_id":"boot-1"}}`,
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// certified runs an agent to the state in which hooks pass on the certificate with serial 5.
func (b *bench) certified() {
	b.t.Helper()
	b.run()
	b.desire(b.desired(1, 5))
	b.wait(time.Second)
	if r := b.prolog(); r.Exit != 0 || b.outcomes()[FastPass] != 1 {
		b.t.Fatalf("prolog of a certified node: %+v, %v", r, b.outcomes())
	}
}

func TestTombstoneAndPlaceSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		b.desire(b.desired(1, 5))
		b.kernel.add(lineXID79)
		synctest.Wait()
		b.out.take()
		b.restart()
		defer b.end()
		if st := b.status(); st.Tombstone == nil || st.FastPath || len(st.OpenFaults) != 1 || st.Certificate == nil {
			t.Fatalf("status after restart %+v", st)
		}
		for _, r := range b.out.take() {
			for _, f := range r.Findings {
				if f.Code == 79 && r.ID[0] == 'k' {
					t.Fatalf("told again from the kernel log after a restart: %+v", r)
				}
			}
		}
	})
}

// An unreadable tombstone stands: it voids the certificate at hand, until a later one comes.
func TestAnUnreadableTombstoneStands(t *testing.T) {
	for name, content := range junk {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.certified()
				if err := b.end(); err != nil {
					t.Fatal(err)
				}
				b.write(tombstoneFile, content)
				b.run()
				b.wait(time.Second)
				b.desire(b.desired(2, 5))
				if st := b.status(); st.FastPath || st.Tombstone == nil || !strings.Contains(st.Why, "cannot be read") {
					t.Fatalf("fast path %v (%s), tombstone %+v", st.FastPath, st.Why, st.Tombstone)
				}
				// It holds after the next restart as well, whatever the file says by then.
				b.restart()
				b.wait(time.Second)
				if st := b.status(); st.FastPath || st.Tombstone == nil {
					t.Fatalf("after a restart: fast path %v, tombstone %+v", st.FastPath, st.Tombstone)
				}
				b.desire(b.desired(3, 6))
				if st := b.status(); !st.FastPath || st.Tombstone != nil {
					t.Fatalf("after a later certificate: fast path %v (%s), tombstone %+v", st.FastPath, st.Why, st.Tombstone)
				}
				if _, err := os.Stat(filepath.Join(b.dir, tombstoneFile)); !os.IsNotExist(err) {
					t.Errorf("the file is still there: %v", err)
				}
				if err := b.end(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// When the desired state is lost with it, it stands for the first certificate that comes.
func TestAnUnreadableTombstoneStandsForACertificateNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write(tombstoneFile, "{")
		b.write("desired.json", "{")
		b.run()
		defer b.end()
		b.desire(b.desired(1, 0))
		b.desire(b.desired(2, 9))
		b.wait(time.Second)
		if st := b.status(); st.FastPath || !st.Tombstone.Covers(9) || st.Tombstone.Covers(10) {
			t.Fatalf("fast path %v, tombstone %+v", st.FastPath, st.Tombstone)
		}
		b.desire(b.desired(3, 10))
		if st := b.status(); !st.FastPath {
			t.Fatalf("after a later certificate: %s", st.Why)
		}
	})
}

// Every other state file is taken as absent when it makes no sense. That never lets a hook pass on a certificate whose
// state is in doubt, and never keeps the agent from running.
func TestUnreadableStateIsAbsent(t *testing.T) {
	for _, file := range []string{"desired.json", "seen.json", "kernel.json", "contact.json", "jobs.json", "effects.json"} {
		for name, content := range junk {
			t.Run(file+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t)
					b.certified()
					b.kernel.add(lineXID79)
					b.wait(time.Second)
					if b.status().Tombstone == nil {
						t.Fatal("no tombstone")
					}
					if err := b.end(); err != nil {
						t.Fatal(err)
					}
					b.write(file, content)
					b.kernel.at = 0
					b.run()
					b.wait(time.Second)
					if r := b.prolog(); b.outcomes()[FastPass] != 0 {
						t.Errorf("passed on a certificate that is void: %+v", r)
					}
					b.desire(b.desired(2, 5))
					if st := b.status(); st.FastPath || st.Tombstone == nil {
						t.Errorf("fast path %v, tombstone %+v", st.FastPath, st.Tombstone)
					}
					b.desire(b.desired(3, 6))
					b.wait(time.Second)
					if r := b.prolog(); r.Exit != 0 || b.outcomes()[FastPass] != 1 {
						t.Errorf("after a later certificate: %+v, %v, %s", r, b.outcomes(), b.status().Why)
					}
					if err := b.end(); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// Part of a file that turns out to be broken further on is not taken either.
func TestHalfAStateFileIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "seen.json"), []byte(`{"gpus":[{"uuid":"GPU-x","index":0}],"driver":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if g := KnownGPUs(dir); len(g) != 0 {
		t.Errorf("known GPUs %+v of a broken file", g)
	}
}

// An agent killed between telling a fault and noting that it was told reads the fault again, with what came since. The
// control plane knows reports by their ids: the longer one is another.
func TestAKernelReportGrownSinceAKillIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		b.desire(b.desired(1, 5))
		noted := filepath.Join(b.dir, "kernel.json")
		told := func(lines ...string) checks.Report {
			t.Helper()
			b.kernel.add(lines...)
			synctest.Wait()
			for _, r := range b.out.take() {
				if r.ID[0] == 'k' {
					return r
				}
			}
			t.Fatal("nothing was told from the kernel log")
			return checks.Report{}
		}
		again := func(lines ...string) checks.Report {
			t.Helper()
			if err := b.end(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(noted); err != nil {
				t.Fatal(err)
			}
			b.out.take()
			b.kernel.mu.Lock()
			b.kernel.at = 0
			b.kernel.mu.Unlock()
			b.kernel.add(lines...)
			b.run()
			return told()
		}
		first := told(lineXID79)
		same := again()
		longer := again(strings.Replace(lineXID79, "79", "119", 1))
		if same.ID != first.ID {
			t.Errorf("the same records told again as %s, before as %s", same.ID, first.ID)
		}
		if longer.ID == first.ID || len(longer.Findings) != 2 {
			t.Errorf("more records told as %s with %d findings, before as %s", longer.ID, len(longer.Findings), first.ID)
		}
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
	})
}
