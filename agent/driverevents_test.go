package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// The kernel log's line is lineXID79; the event is the same GPU's.
func event79() DriverEvent { return DriverEvent{PCI: "0000:5e:00.0", Code: 79, At: time.Now()} }

// xids gives how often XID 79 was counted, and the finding as it is remembered.
func (b *bench) xids() (uint64, checks.Finding) {
	b.t.Helper()
	st, err := b.agent.Stats(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var found checks.Finding
	for _, f := range b.status().Faults {
		if f.Code == 79 {
			found = f
		}
	}
	return st.XIDs[XIDKey{79, "GPU-b"}], found
}

func TestLineAndEventOfOneXIDAreOne(t *testing.T) {
	gap := policy.Default().Agent.IncidentGap.D()
	for _, tt := range []struct {
		name    string
		do      func(b *bench)
		count   uint64
		reports int
		words   bool // the kernel log's
	}{
		{"the line alone", func(b *bench) { b.kernel.add(lineXID79) }, 1, 1, true},
		{"the line, then the event", func(b *bench) { b.kernel.add(lineXID79); b.wait(time.Millisecond); b.events <- event79() }, 1, 1, true},
		{"the event, then the line while it waits", func(b *bench) { b.events <- event79(); b.wait(eventGrace - time.Millisecond); b.kernel.add(lineXID79) }, 1, 1, true},
		{"the event alone", func(b *bench) { b.events <- event79() }, 1, 1, false},
		{"the line long after the event gives its words, and does not count", func(b *bench) { b.events <- event79(); b.wait(20 * time.Second); b.kernel.add(lineXID79) }, 1, 1, true},
		{"two lines long after one event: one more", func(b *bench) { b.events <- event79(); b.wait(20 * time.Second); b.kernel.add(lineXID79, lineXID79) }, 2, 1, true},
		{"three lines and three events", func(b *bench) {
			b.kernel.add(lineXID79, lineXID79, lineXID79)
			for range 3 {
				b.events <- event79()
			}
		}, 3, 1, true},
		{"an event just within the window of a line", func(b *bench) { b.kernel.add(lineXID79); b.wait(gap); b.events <- event79() }, 1, 1, true},
		{"an event after the window of a line", func(b *bench) { b.kernel.add(lineXID79); b.wait(gap + time.Millisecond); b.events <- event79() }, 2, 1, false},
		{"a line just within the window of an event", func(b *bench) { b.events <- event79(); b.wait(gap); b.kernel.add(lineXID79) }, 1, 1, true},
		{"a line after the window of an event", func(b *bench) { b.events <- event79(); b.wait(gap + time.Millisecond); b.kernel.add(lineXID79) }, 2, 1, true},
		{"another GPU's line hides no event", func(b *bench) { b.kernel.add(strings.Replace(lineXID79, "5e", "3b", 1)); b.events <- event79() }, 1, 2, false},
		{"another code's line hides no event", func(b *bench) { b.kernel.add(strings.Replace(lineXID79, "79,", "95,", 1)); b.events <- event79() }, 1, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.run()
				defer b.end()
				b.desire(b.desired(1, 5))
				b.out.take()
				tt.do(b)
				b.wait(eventGrace)
				count, f := b.xids()
				told := 0
				for _, r := range b.out.take() {
					if r.Verdict == checks.Fail {
						told++
						if r.Findings[0].Incident == "" {
							t.Errorf("no incident: %+v", r.Findings[0])
						}
					}
				}
				if count != tt.count || uint64(f.Count) != tt.count || told != tt.reports {
					t.Errorf("counted %d, finding %d, reports %d; want %d and %d", count, f.Count, told, tt.count, tt.reports)
				}
				if !f.HardFault() || f.Subject.GPUUUID != "GPU-b" || f.BootID != "boot-1" {
					t.Errorf("%+v", f)
				}
				if words := strings.HasPrefix(f.Evidence, "NVRM: "); words != tt.words || !words && !strings.HasPrefix(f.Evidence, "NVML event ") {
					t.Errorf("evidence %q", f.Evidence)
				}
			})
		})
	}
}

// An event is judged as its number alone, and voids the certificate as the line does: within the time that it waits for it.
func TestAnEventAloneBuriesTheCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.run()
		defer b.end()
		b.desire(b.desired(1, 5))
		b.out.take()
		b.events <- event79()
		b.wait(eventGrace - time.Millisecond)
		if st := b.status(); st.Tombstone != nil || len(b.out.take()) != 0 {
			t.Fatal("told before the kernel log had its time")
		}
		b.wait(time.Millisecond)
		got := b.out.take()
		if st := b.status(); st.Tombstone == nil || len(st.OpenFaults) != 1 || len(got) != 1 || got[0].Findings[0].Action != checks.Reboot {
			t.Fatalf("%+v, %+v", st, got)
		}
	})
}

func TestEventsThatChangeNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy func(*policy.Policy)
		code   int
		known  bool // it is in the next routine report
	}{
		{"a job's own fault", nil, 13, true},
		{"a code that is not known", nil, 999, true},
		{"a verdict that says not which", nil, 154, true},
		{"events are switched off", func(p *policy.Policy) { p.XID.NVMLEvents = false }, 79, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.run()
				defer b.end()
				d := b.desired(1, 5)
				if tt.policy != nil {
					tt.policy(&d.Policy)
				}
				b.desire(d)
				b.out.take()
				b.events <- DriverEvent{PCI: "0000:5e:00.0", Code: tt.code, At: time.Now()}
				b.wait(eventGrace)
				if st := b.status(); !st.FastPath || st.Tombstone != nil || len(st.Faults) != 0 {
					t.Fatalf("%+v", st)
				}
				b.wait(31 * time.Second)
				known := false
				for _, r := range b.out.take() {
					for _, f := range r.Findings {
						known = known || f.Code == tt.code
					}
				}
				if known != tt.known {
					t.Errorf("reported: %t", known)
				}
			})
		})
	}
}

func TestXIDSourcesAreBounded(t *testing.T) {
	var s xidSources
	for code := range 3 * maxXIDSources {
		s.event(xidOn{"0000:5e:00.0", code}, 0, time.Second)
		s.line(xidOn{"0000:5f:00.0", code}, 0, time.Second)
	}
	if len(s) > maxXIDSources {
		t.Errorf("%d remembered", len(s))
	}
}
