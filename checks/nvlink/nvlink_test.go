package nvlink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/policy"
)

var limits = policy.NVLink{MaxCRCPerSecond: 100, MaxRetriesPerMinute: 60, MaxEffectiveBER: 1e-6}

// node is n GPUs of a product with as many links, the first of them active.
func node(n int, name string, links, active int) []GPU {
	var out []GPU
	for i := range n {
		g := GPU{GPU: checks.GPU{Node: "gpu001", UUID: fmt.Sprintf("GPU-%d", i), Index: i, Name: name}, Reading: Reading{Have: checks.Read}}
		for k := range links {
			l := Link{Have: checks.Read, Version: 6, SpeedMBps: 26562, Replay: counter.Of(0), Recovery: counter.Of(0), CRC: counter.Of(0),
				Effective: BER{Have: checks.NotSupported}, Symbol: BER{Have: checks.NotSupported}} // as before NVLink 5
			if k < active {
				l.State = Active
			}
			g.Links = append(g.Links, l)
		}
		out = append(out, g)
	}
	return out
}

const (
	sxm    = "NVIDIA H100 80GB HBM3"
	nvl    = "NVIDIA H100 NVL"
	bridge = "NVIDIA A100 80GB PCIe"
)

func TestStates(t *testing.T) {
	down := func(g *GPU, links ...int) {
		for _, l := range links {
			g.Links[l].State = Inactive
		}
	}
	for _, tt := range []struct {
		name   string
		node   func() []GPU
		links  int // policy
		gpu    int // judged
		want   checks.Verdict
		action checks.Action
		reason string
	}{
		{"all active", func() []GPU { return node(8, sxm, 18, 18) }, 0, 3, checks.Pass, checks.None, "18 of 18 links active"},
		{"sample 20 A: 12 of 18 by design", func() []GPU { return node(2, nvl, 18, 12) }, 0, 0, checks.Pass, checks.None, "12 of 18 links active"},
		{"sample 20 B: two links that the peer has", func() []GPU { n := node(2, nvl, 18, 12); down(&n[1], 3, 7); return n }, 0, 1, checks.Fail, checks.Reboot, "link 3, 7 inactive, active on most of 1 peers"},
		{"sample 20 B: the peer is well", func() []GPU { n := node(2, nvl, 18, 12); down(&n[1], 3, 7); return n }, 0, 0, checks.Pass, checks.None, "12 of 18"},
		{"sample 20 C: all links of all GPUs inactive", func() []GPU { return node(8, sxm, 18, 0) }, 0, 0, checks.Fail, checks.FixConfig, "look at the fabric manager and the driver first"},
		{"gpud 1085: inactive B200 is not healthy", func() []GPU { return node(8, "NVIDIA B200", 18, 0) }, 0, 5, checks.Fail, checks.FixConfig, "all links of all GPUs inactive"},
		{"sample 14: 16 of 18 where all peers have 18", func() []GPU { n := node(8, sxm, 18, 18); down(&n[2], 16, 17); return n }, 0, 2, checks.Fail, checks.Reboot, "link 16, 17 inactive, active on most of 7 peers"},
		{"one GPU without any link", func() []GPU { n := node(8, sxm, 2, 2); down(&n[4], 0, 1); return n }, 0, 4, checks.Fail, checks.Reboot, "link 0, 1 inactive"},
		{"half of the peers have it: by design", func() []GPU { n := node(5, sxm, 4, 4); down(&n[0], 3); down(&n[1], 3); down(&n[2], 3); return n }, 0, 0, checks.Pass, checks.None, "3 of 4"},
		{"more than half have it", func() []GPU { n := node(6, sxm, 4, 4); down(&n[0], 3); down(&n[1], 3); down(&n[2], 3); return n }, 0, 0, checks.Fail, checks.Reboot, "link 3 inactive, active on most of 5 peers"},
		{"peers of another product do not count", func() []GPU {
			n := node(4, sxm, 18, 18)
			for i := range n[1:] {
				n[i+1].Name = "NVIDIA H200"
			}
			down(&n[0], 3)
			return n
		}, 0, 0, checks.Pass, checks.None, "17 of 18"},
		{"NVSentinel 1481: a PCIe board without a bridge beside a pair with one", func() []GPU {
			n := node(3, bridge, 12, 12)
			down(&n[2], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
			return n
		}, 0, 2, checks.NotApplicable, checks.None, "no bridge is fitted"},
		{"PCIe boards without bridges", func() []GPU { return node(8, bridge, 12, 0) }, 0, 0, checks.NotApplicable, checks.None, "no bridge is fitted"},
		{"a bridge that lost a link", func() []GPU { n := node(2, bridge, 12, 12); down(&n[1], 5); return n }, 0, 1, checks.Fail, checks.Reboot, "link 5"},
		{"a single GPU with no link active", func() []GPU { return node(1, sxm, 18, 0) }, 0, 0, checks.NotApplicable, checks.None, "no peer to compare with"},
		{"a link that was active in this boot, on all alike", func() []GPU {
			n := node(2, nvl, 18, 12)
			for i := range n {
				down(&n[i], 11)
				n[i].Links[11].Seen = true
			}
			return n
		}, 0, 0, checks.Fail, checks.ResetGPU, "link 11 inactive, active earlier in this boot"},
		{"one lost in this boot and one that never came up", func() []GPU { n := node(8, sxm, 18, 18); down(&n[0], 1, 2); n[0].Links[1].Seen = true; return n }, 0, 0, checks.Fail, checks.Reboot, "link 1 inactive, active earlier in this boot; link 2 inactive"},
		{"a single GPU that lost its links in this boot", func() []GPU { n := node(1, nvl, 1, 0); n[0].Links[0].Seen = true; return n }, 0, 0, checks.Fail, checks.ResetGPU, "link 0"},
		{"the far end is named", func() []GPU {
			n := node(8, sxm, 18, 18)
			down(&n[0], 1)
			n[0].Links[1].Remote = "0000:05:00.0"
			return n
		}, 0, 0, checks.Fail, checks.Reboot, "link 1 (to 0000:05:00.0) inactive"},
		{"as many as policy names", func() []GPU { return node(2, nvl, 18, 12) }, 12, 0, checks.Pass, checks.None, "12 of 18"},
		{"fewer than policy names, on all alike", func() []GPU { return node(2, nvl, 18, 11) }, 12, 0, checks.Fail, checks.Reboot, "11 links active, 12 expected by policy"},
		{"none, and policy names some", func() []GPU { return node(1, sxm, 18, 0) }, 18, 0, checks.Fail, checks.Reboot, "0 links active, 18 expected"},
		{"none on any GPU, and policy names some: software first all the same", func() []GPU { return node(8, sxm, 18, 0) }, 18, 0, checks.Fail, checks.FixConfig, "look at the fabric manager"},
		{"asleep is up", func() []GPU { n := node(8, sxm, 18, 18); n[0].Links[4].State = Sleep; return n }, 0, 0, checks.Pass, checks.None, "18 of 18"},
		{"trained without traffic", func() []GPU { n := node(8, sxm, 18, 18); n[0].Links[4].State = TrafficDisabled; return n }, 0, 0, checks.Pass, checks.Watch, "link 4 trained but without traffic"},
		{"one link not read", func() []GPU { n := node(8, sxm, 18, 18); n[0].Links[4] = Link{}; return n }, 0, 0, checks.Unknown, checks.None, "link 4 not read"},
		{"one not read, one broken", func() []GPU { n := node(8, sxm, 18, 18); n[0].Links[4] = Link{}; down(&n[0], 5); return n }, 0, 0, checks.Fail, checks.Reboot, "link 5"},
		{"a link the chip does not have", func() []GPU { n := node(8, sxm, 18, 18); n[0].Links[17] = Link{Have: checks.NotSupported}; return n }, 0, 0, checks.Pass, checks.None, "17 of 18"},
		{"peers that were not read prove nothing", func() []GPU { n := node(2, nvl, 18, 12); n[1].Reading = Reading{}; down(&n[0], 3); return n }, 0, 0, checks.Pass, checks.None, "11 of 18"},
		{"never asked", func() []GPU { n := node(1, sxm, 18, 18); n[0].Reading = Reading{}; return n }, 0, 0, checks.Unknown, checks.None, "NVLinks not read"},
		{"the call failed", func() []GPU { n := node(1, sxm, 18, 18); n[0].Have, n[0].Err = checks.Unread, "timeout"; return n }, 0, 0, checks.Unknown, checks.None, "not read: timeout"},
		{"a GPU without NVLink", func() []GPU { n := node(1, "Tesla T4", 0, 0); n[0].Have = checks.NotSupported; return n }, 0, 0, checks.NotApplicable, checks.None, "has no NVLink"},
		{"a GPU with none of them", func() []GPU { return node(1, "NVIDIA L40S", 0, 0) }, 4, 0, checks.NotApplicable, checks.None, "has no NVLink"},
		{"a driver that does not tell", func() []GPU {
			n := node(1, sxm, 0, 0)
			n[0].Reading = Reading{Have: checks.NotSupported, Err: "this driver does not tell"}
			return n
		}, 0, 0, checks.NotApplicable, checks.None, "this driver does not tell"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, p := tt.node(), limits
			p.Links = tt.links
			fs := Judge(n, p)
			if len(fs) != len(n) {
				t.Fatalf("%d findings for %d GPUs", len(fs), len(n))
			}
			f := fs[tt.gpu]
			if f.Verdict != tt.want || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.want, tt.action, tt.reason)
			}
			if f.Check != ID || f.Subject.Key() != "gpu/"+n[tt.gpu].UUID {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestQuality(t *testing.T) {
	rose := func(by uint64) counter.Reading { return counter.Of(1000 + by).After(counter.Of(1000)) }
	for _, tt := range []struct {
		name   string
		over   time.Duration
		link   func(*Link)
		want   checks.Verdict
		action checks.Action
		reason string
	}{
		{"no errors", time.Minute, func(l *Link) { l.CRC, l.Replay, l.Recovery = rose(0), rose(0), rose(0) }, checks.Pass, checks.None, "18 of 18"},
		{"errors from before the first reading are not judged", 0, func(l *Link) { l.CRC, l.Replay = counter.Of(9000), counter.Of(3000) }, checks.Pass, checks.None, "18 of 18"},
		{"as many CRC errors as DCGM allows", 1000 * time.Second, func(l *Link) { l.CRC = rose(100_000) }, checks.Pass, checks.Watch, "link 3: 100000 CRC errors in 16m40s"},
		{"more", 1000 * time.Second, func(l *Link) { l.CRC = rose(100_001) }, checks.Fail, checks.Drain, "link 3: 100.0 CRC errors a second, more than 100"},
		{"the first replay is watched", time.Minute, func(l *Link) { l.Replay = rose(1) }, checks.Pass, checks.Watch, "link 3: 1 replays and 0 recoveries in 1m0s"},
		{"and the first recovery", time.Minute, func(l *Link) { l.Recovery = rose(1) }, checks.Pass, checks.Watch, "0 replays and 1 recoveries"},
		{"as many retries as allowed", 1000 * time.Minute, func(l *Link) { l.Replay, l.Recovery = rose(30_000), rose(30_000) }, checks.Pass, checks.Watch, "30000 replays and 30000 recoveries in 16h40m0s"},
		{"more retries", 1000 * time.Minute, func(l *Link) { l.Replay, l.Recovery = rose(30_001), rose(30_000) }, checks.Fail, checks.Drain, "replays and recoveries a minute, more than 60"},
		{"a bit error rate at the limit", 0, func(l *Link) { l.Effective = Unpack(1<<8 | 6) }, checks.Pass, checks.None, ""},
		{"a bit error rate above it", 0, func(l *Link) { l.Effective = Unpack(2<<8 | 6) }, checks.Fail, checks.Drain, "link 3: bit error rate 2e-06 after correction, above 1e-06"},
		{"as good as NVML can tell", 0, func(l *Link) { l.Effective = Unpack(15<<8 | 255) }, checks.Pass, checks.None, ""},
		{"a rate nobody read", 0, func(l *Link) { l.Effective = BER{Mantissa: 9, Exponent: 1} }, checks.Unknown, checks.None, "bit error rate of link 3 not read"},
		{"a CRC counter that was not read is not zero", time.Minute, func(l *Link) { l.CRC = counter.Reading{} }, checks.Unknown, checks.None, "CRC counter of link 3 not read"},
		{"nor is one of replays, and what was seen is said", time.Minute, func(l *Link) { l.Replay, l.CRC = counter.Reading{}, rose(1) }, checks.Unknown, checks.Watch, "replay counter of link 3 not read; link 3: 1 CRC errors"},
		{"nor is one of recoveries; a fault stays one", time.Minute, func(l *Link) { l.Recovery, l.CRC = counter.Reading{}, rose(9999) }, checks.Fail, checks.Drain, "CRC errors a second"},
		{"a counter that the driver does not have", time.Minute, func(l *Link) { l.CRC = counter.Reading{Have: checks.NotSupported} }, checks.Pass, checks.None, "18 of 18 links active"},
		{"saturated at 8 bits: said as such, and no rate", time.Minute, func(l *Link) { l.Replay = counter.Of(255).After(counter.Of(255)) }, checks.Pass, checks.Watch, "link 3: replay counter saturated at 255"},
		{"saturated at 16 bits", time.Minute, func(l *Link) { l.Recovery = counter.Of(65535) }, checks.Pass, checks.Watch, "recovery counter saturated at 65535"},
		{"saturated at 32 bits", time.Minute, func(l *Link) { l.CRC = counter.Of(1<<32 - 1) }, checks.Pass, checks.Watch, "CRC counter saturated at 4294967295"},
		{"slower than the others", 0, func(l *Link) { l.SpeedMBps = 13281 }, checks.Pass, checks.Watch, "link 3 runs at 13281 MB/s, others at 26562"},
		{"an inactive link's counters are its past", time.Minute, func(l *Link) { l.CRC, l.State, l.Have = rose(9999), Inactive, checks.NotSupported }, checks.Pass, checks.None, "17 of 18"},
		{"counters that were reset", time.Minute, func(l *Link) { l.CRC = counter.Of(5).After(counter.Of(1 << 40)) }, checks.Pass, checks.None, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := node(2, sxm, 18, 18)
			n[0].Over = tt.over
			tt.link(&n[0].Links[3])
			f := Judge(n, limits)[0]
			if f.Verdict != tt.want || f.Action != tt.action || f.Hard || !strings.Contains(f.Reason, tt.reason) {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.want, tt.action, tt.reason)
			}
		})
	}
}

func TestEvidence(t *testing.T) {
	n := node(2, sxm, 4, 4)
	n[0].Over = time.Minute
	n[0].Links[0].Replay = counter.Of(7).After(counter.Of(5))
	n[0].Links[1].State = Inactive
	n[0].Links[2] = Link{}
	n[0].Links[3].Effective = Unpack(3<<8 | 12)
	if got, want := Judge(n, limits)[0].Evidence, "links=4 active=2 over=1m0s 0:replay=7(+2) 1:state=0 2:unread 3:ber=3e-12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Renaming GPUs and listing them in another order changes nothing but the order; and a link more that is down never makes a
// GPU better.
func TestJudgeByRelation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := node(rapid.IntRange(2, 8).Draw(t, "gpus"), rapid.SampledFrom([]string{sxm, nvl, bridge}).Draw(t, "name"), 6, 6)
		for i := range n {
			for k := range n[i].Links {
				n[i].Links[k].State = State(rapid.IntRange(0, 3).Draw(t, "state"))
				n[i].Links[k].Seen = rapid.Bool().Draw(t, "seen")
			}
		}
		before := Judge(n, limits)
		var reversed []GPU
		for i := range n {
			reversed = append(reversed, n[len(n)-1-i])
		}
		after := Judge(reversed, limits)
		for i := range before {
			if a, b := before[i], after[len(n)-1-i]; a.Verdict != b.Verdict || a.Reason != b.Reason || a.Subject.Key() != b.Subject.Key() {
				t.Fatalf("GPU %d: %v %q, in another order %v %q", i, a.Verdict, a.Reason, b.Verdict, b.Reason)
			}
		}
		if before[0].Verdict == checks.Fail {
			k := rapid.IntRange(0, 5).Draw(t, "link")
			n[0].Links[k].State, n[0].Links[k].Seen = Inactive, true
			if f := Judge(n, limits)[0]; f.Verdict != checks.Fail {
				t.Fatalf("with link %d down as well: %v %q, before %q", k, f.Verdict, f.Reason, before[0].Reason)
			}
		}
	})
}

func TestThreeFixtures(t *testing.T) {
	checktest.Three(t, ID, Judge(node(8, sxm, 18, 18), limits), Judge(node(8, sxm, 18, 0), limits), Judge([]GPU{{GPU: checks.GPU{UUID: "GPU-1"}}}, limits))
}

func TestUpAndErrors(t *testing.T) {
	r := node(1, sxm, 4, 3)[0].Reading
	for i := range r.Links {
		l := &r.Links[i]
		l.Replay, l.Recovery, l.CRC = counter.Of(1), counter.Of(10), counter.Of(100)
	}
	r.Links[3].CRC = counter.Reading{Have: checks.NotSupported}
	if n, have := r.Errors(); n != 344 || have != checks.Read {
		t.Errorf("%d errors, %s", n, have)
	}
	if n, known := r.Up(); n != 3 || !known {
		t.Errorf("%d up, known %t", n, known)
	}
	r.Links[0].CRC.Have, r.Links[1].Have = checks.Unread, checks.Unread
	if _, have := r.Errors(); have != checks.Unread {
		t.Error("a sum of what was not all read")
	}
	if _, known := r.Up(); known {
		t.Error("a count of what was not all read")
	}
	if _, have := (Reading{}).Errors(); have != checks.Unread {
		t.Error("a sum of nothing")
	}
	none := counter.Reading{Have: checks.NotSupported}
	untold := Reading{Have: checks.Read, Links: []Link{{Have: checks.Read, State: Active, Replay: none, Recovery: none, CRC: none}}}
	if n, have := untold.Errors(); n != 0 || have != checks.NotSupported {
		t.Errorf("%d errors of what is not counted, %s", n, have)
	}
}
