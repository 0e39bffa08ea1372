package bandwidth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/golden"
)

var limits = policy.Bandwidth{MinShare: 0.7, PeerShare: 0.8}

// gen5 is a link that both ends can run at Gen 5 x16: 63.0 GB/s.
func gen5() *golden.Link {
	return &golden.Link{Gen: 5, Width: 16, MaxGen: 5, MaxWidth: 16, PortGen: 5, PortWidth: 16}
}

// at is a reading of so many GB/s each way.
func at(to, from float64) Reading {
	return Reading{Have: checks.Read, ToGPU: Rate{to * 1e9, to * 1e9}, FromGPU: Rate{from * 1e9, from * 1e9}, Link: gen5(), Near: true}
}

func with(r Reading, change func(*golden.Link)) Reading {
	change(r.Link)
	return r
}

func unlinked(r Reading) Reading {
	r.Link = nil
	return r
}

// node names the readings' GPUs: all of one product, but for those in others.
func node(rs []Reading, others ...int) (out []GPU) {
	for i, r := range rs {
		g := GPU{checks.GPU{Node: "gpu001", UUID: fmt.Sprintf("GPU-%d", i), Index: i, Name: "NVIDIA H100"}, r}
		for _, o := range others {
			if o == i {
				g.Name = "NVIDIA A10"
			}
		}
		out = append(out, g)
	}
	return out
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   Reading
		rest    []Reading
		limits  policy.Bandwidth
		width   int
		verdict checks.Verdict
		reason  string
	}{
		{"what a healthy H100 reaches", at(55.6, 55), nil, limits, 0, checks.Pass, "to the GPU 55.6 GB/s, 88 % of what Gen5 x16 gives; from the GPU 55.0 GB/s, 87 % of"},
		{"half the width, to the GPU", at(27.5, 55), nil, limits, 0, checks.Fail, "to the GPU 27.5 GB/s, 44 % of what Gen5 x16 gives; 70 % wanted; the link ran at Gen5 x16"},
		{"half the speed, from the GPU", at(55, 27.5), nil, limits, 0, checks.Fail, "from the GPU 27.5 GB/s, 44 % of what Gen5 x16 gives; 70 % wanted"},
		{"just the share that is wanted", at(44.2, 55), nil, limits, 0, checks.Pass, "70 % of"},
		{"just below", at(43.9, 55), nil, limits, 0, checks.Fail, "70 % of what Gen5 x16 gives; 70 % wanted"},
		{"how it runs now is no excuse", with(at(27.5, 27.5), func(l *golden.Link) { l.Width = 8 }), nil, limits, 0, checks.Fail, "the link ran at Gen5 x8"},
		{"a port of the generation before", with(at(25, 25), func(l *golden.Link) { l.PortGen = 4 }), nil, limits, 0, checks.Pass, "79 % of what Gen4 x16 gives"},
		{"a port of eight lanes", with(at(27, 27), func(l *golden.Link) { l.PortWidth = 8 }), nil, limits, 0, checks.Pass, "86 % of what Gen5 x8 gives"},
		{"a port that is not known", with(at(27, 27), func(l *golden.Link) { l.PortGen, l.PortWidth = 0, 0 }), nil, limits, 0, checks.Fail, "what Gen5 x16 gives"},
		{"policy knows of eight lanes", at(27, 27), nil, limits, 8, checks.Pass, "86 % of what Gen5 x8 gives"},
		{"Gen 3", with(at(12.5, 12.5), func(l *golden.Link) { l.MaxGen = 3 }), nil, limits, 0, checks.Pass, "79 % of what Gen3 x16 gives"},
		{"Gen 2", with(at(6.5, 6.5), func(l *golden.Link) { l.MaxGen = 2 }), nil, limits, 0, checks.Pass, "81 % of what Gen2 x16 gives"},
		{"Gen 1", with(at(3, 3), func(l *golden.Link) { l.MaxGen = 1 }), nil, limits, 0, checks.Pass, "75 % of what Gen1 x16 gives"},
		{"Gen 6", with(at(100, 100), func(l *golden.Link) { l.MaxGen, l.PortGen = 6, 6 }), nil, limits, 0, checks.Pass, "83 % of what Gen6 x16 gives"},
		{"slower than its peers", at(46, 46), []Reading{at(60, 60), at(58, 58), at(59, 59)}, limits, 0, checks.Fail, "46.0 GB/s, 73 % of what Gen5 x16 gives; the node's other GPUs reach 59.0 GB/s"},
		{"a little slower than its peers", at(48, 48), []Reading{at(59.5, 59.5), at(60, 60), at(58, 58)}, limits, 0, checks.Pass, ""},
		{"as slow as is allowed", at(45, 45), []Reading{at(56, 56), at(56, 56)}, limits, 0, checks.Pass, ""},
		{"just slower", at(44.7, 44.7), []Reading{at(56, 56), at(56, 56)}, limits, 0, checks.Fail, "other GPUs reach 56.0 GB/s"},
		{"one peer is none", at(46, 46), []Reading{at(60, 60)}, limits, 0, checks.Pass, ""},
		{"a peer that was not measured is none", at(46, 46), []Reading{at(60, 60), {}}, limits, 0, checks.Pass, ""},
		{"no link is known, but peers", unlinked(at(24, 24)), []Reading{at(25, 25), at(24, 24)}, limits, 0, checks.Pass, "to the GPU 24.0 GB/s; from the GPU 24.0 GB/s"},
		{"no link is known, and peers are faster", unlinked(at(12, 24)), []Reading{at(25, 25), at(24, 24)}, limits, 0, checks.Fail, "to the GPU 12.0 GB/s; the node's other GPUs reach 24.0 GB/s"},
		{"nothing to compare with", unlinked(at(24, 24)), nil, limits, 0, checks.NotApplicable, "how fast it should be is not known"},
		{"a link of unknown speed", with(at(24, 24), func(l *golden.Link) { l.MaxGen, l.PortGen = 0, 0 }), nil, limits, 0, checks.Unknown, "how fast it should be is not known"},
		{"a link of a later generation", with(at(24, 24), func(l *golden.Link) { l.MaxGen, l.PortGen = 7, 7 }), nil, limits, 0, checks.Unknown, "not known"},
		{"a link of unknown width", with(at(24, 24), func(l *golden.Link) { l.MaxWidth, l.PortWidth = 0, 0 }), nil, limits, 0, checks.Unknown, "not known"},
		{"policy sets a figure", unlinked(at(24, 24)), nil, policy.Bandwidth{MinShare: 0.7, PeerShare: 0.8, MinGBps: 24}, 0, checks.Pass, ""},
		{"policy sets the least there is", unlinked(at(24, 24)), nil, policy.Bandwidth{MinShare: 0.7, PeerShare: 0.8, MinGBps: 0.01}, 0, checks.Pass, ""},
		{"policy sets a higher one", unlinked(at(23.995, 24)), nil, policy.Bandwidth{MinShare: 0.7, PeerShare: 0.8, MinGBps: 24}, 0, checks.Fail, "24.0 GB/s wanted"},
		{"not measured", Reading{Err: "k21_h2d: others copied"}, nil, limits, 0, checks.Unknown, "not measured: k21_h2d: others copied"},
		{"never run", Reading{}, nil, limits, 0, checks.Unknown, "the bandwidth of copies was not measured"},
		{"what nobody measured proves nothing", Reading{ToGPU: Rate{55e9, 55e9}, FromGPU: Rate{55e9, 55e9}, Link: gen5()}, nil, limits, 0, checks.Unknown, "not measured"},
		{"a GPU that is too old", Reading{Have: checks.NotSupported, Err: "needs compute capability 7.0"}, nil, limits, 0, checks.NotApplicable, "needs compute capability 7.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := Judge(node(append([]Reading{tt.first}, tt.rest...)), tt.limits, tt.width)
			if len(fs) != len(tt.rest)+1 {
				t.Fatalf("%+v", fs)
			}
			f := fs[0]
			want := checks.None
			if tt.verdict == checks.Fail {
				want = checks.Drain
			}
			if f.Verdict != tt.verdict || f.Action != want || f.Hard || !strings.Contains(f.Reason, tt.reason) || f.Check != ID || f.Subject.Key() != "gpu/GPU-0" {
				t.Errorf("got %v, %v, hard %t, %s, %q; want %v, %q", f.Verdict, f.Action, f.Hard, f.Subject.Key(), f.Reason, tt.verdict, tt.reason)
			}
			if read := tt.first.Have == checks.Read; read != (f.Evidence != "") {
				t.Errorf("evidence %q", f.Evidence)
			}
		})
	}
}

func TestOnlyTheSameProductIsAPeer(t *testing.T) {
	rs := []Reading{unlinked(at(12, 12)), at(25, 25), at(24, 24)}
	if f := Judge(node(rs, 1), limits, 0)[0]; f.Verdict != checks.NotApplicable {
		t.Errorf("%+v", f)
	}
}

func TestEvidence(t *testing.T) {
	r := at(55.6, 54)
	r.ToGPU.Worst = 50e9
	if got, want := Judge(node([]Reading{r}), limits, 0)[0].Evidence, "to_gpu=55.60 to_gpu_worst=50.00 from_gpu=54.00 from_gpu_worst=54.00 near=true link=Gen5x16 gen=5 width=16"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOf(t *testing.T) {
	result := func(change func(to, from *golden.Stage)) golden.Result {
		r := golden.Result{Stages: []golden.Stage{
			{Kernel: "k01_imad"},
			{Kernel: "k21_h2d", Copy: &golden.Copy{Near: true, Link: gen5(), Rates: []golden.Rate{{Direction: golden.HostToDevice, Median: 5, Worst: 4}}}},
			{Kernel: "k21_d2h", Copy: &golden.Copy{Near: true, Rates: []golden.Rate{{Direction: golden.DeviceToHost, Median: 7, Worst: 6}}}},
		}}
		if change != nil {
			change(&r.Stages[1], &r.Stages[2])
		}
		return r
	}
	r := Of(result(nil))
	if r.Have != checks.Read || r.ToGPU != (Rate{5, 4}) || r.FromGPU != (Rate{7, 6}) || r.Link == nil || !r.Near {
		t.Errorf("%+v", r)
	}
	if r := Of(result(func(to, from *golden.Stage) { from.Copy.Link, to.Copy.Link, from.Copy.Near = to.Copy.Link, nil, false })); r.Link == nil || r.Near {
		t.Errorf("%+v", r)
	}
	short := result(nil)
	short.Stages, short.Err = short.Stages[:2], "stopped: a job has come"
	for _, tt := range []struct {
		name  string
		r     golden.Result
		have  checks.Availability
		tried bool
		err   string
	}{
		{"a run that ended early", short, checks.Unread, false, "before copies were measured: stopped: a job has come"},
		{"another suite", golden.Result{}, checks.Unread, false, "before copies were measured"},
		{"does not apply", result(func(to, _ *golden.Stage) { to.Skip = "needs compute capability 7.0" }), checks.NotSupported, false, "needs compute"},
		{"an error", result(func(_, from *golden.Stage) { from.Err = "cuMemHostAlloc" }), checks.Unread, true, "k21_d2h: cuMemHostAlloc"},
		{"no turn", result(func(to, _ *golden.Stage) { to.Copy.NoRate = "others copied" }), checks.Unread, true, "k21_h2d: others copied"},
		{"no rate", result(func(to, _ *golden.Stage) { to.Copy.Rates = nil }), checks.Unread, true, "k21_h2d gave no bandwidth"},
		{"a rate of nothing", result(func(to, _ *golden.Stage) { to.Copy.Rates[0].Median = 0 }), checks.Unread, true, "k21_h2d gave no bandwidth"},
		{"wrong data and no rate", result(func(to, _ *golden.Stage) {
			to.Copy.Rates, to.Copy.Wrong = nil, &golden.CopyMismatch{Direction: golden.HostToDevice}
		}), checks.Unread, true, "its data was wrong (host to device)"},
	} {
		if r := Of(tt.r); r.Have != tt.have || !strings.Contains(r.Err, tt.err) || r.Tried != tt.tried {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}

func TestThreeFixtures(t *testing.T) {
	one := func(r Reading) []checks.Finding { return Judge(node([]Reading{r}), limits, 0) }
	checktest.Three(t, ID, one(at(55, 55)), one(at(27, 27)), one(Reading{}))
}
