package port

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strike"
)

const minute = time.Minute

func limits() policy.Ports {
	return policy.Ports{Drop: policy.Duration(4 * minute), Flaps: 3, FlapDown: policy.Duration(25 * time.Second), FlapWindow: policy.Duration(12 * time.Hour),
		Counters: map[string]policy.Limit{
			"link_downed":         {Max: 2, Within: policy.Duration(3 * time.Hour), Action: "drain", Strikes: 1},
			"link_error_recovery": {Max: 5, Within: policy.Duration(minute), Action: "watch"},
		}}
}

// up is a healthy port, and down one that was up before and is down now.
func up(change ...func(*Port)) Port {
	x := Port{Name: "mlx5_3/1", PCI: "0000:5d:00.0", State: "ACTIVE LinkUp", Up: true, Rate: 400, Past: Past{Learned: &Learned{Rate: 400}}}
	for _, c := range change {
		c(&x)
	}
	return x
}

func downFor(d time.Duration, change ...func(*Port)) Port {
	return up(append([]func(*Port){func(x *Port) {
		x.State, x.Up, x.Rate, x.Past.DownFor = "DOWN Polling", false, 0, d
	}}, change...)...)
}

func rose(name string, c Count) func(*Port) {
	return func(x *Port) { x.Past.Counters = map[string]Count{name: c} }
}

func full(rise uint64) Count { return Count{Delta: strike.Delta{Rise: rise, Full: true}} }

func TestJudgePort(t *testing.T) {
	for _, tt := range []struct {
		name    string
		port    Port
		policy  func(*policy.Ports)
		verdict checks.Verdict
		action  checks.Action
		reason  string
	}{
		{"up at the rate it had", up(), nil, checks.Pass, checks.None, "up at 400 Gb/s"},
		{"up, and the kernel does not say how fast", up(func(x *Port) { x.Rate = 0 }), nil, checks.Unknown, checks.None, "up; how fast was not read, should be 400 Gb/s"},
		{"up, and the kernel never said how fast", up(func(x *Port) { x.Rate, x.Past.Learned = 0, &Learned{} }), nil, checks.Pass, checks.None, "up"},
		{"nor does it where policy wants the least there is", up(func(x *Port) { x.Rate, x.Past.Learned = 0, &Learned{} }), func(p *policy.Ports) { p.Rate = 1 }, checks.Unknown, checks.None, "should be 1 Gb/s"},
		{"a counter that was not read is not zero", up(func(x *Port) { x.Unread = []string{"link_downed: input/output error"} }), nil, checks.Unknown, checks.None, "up; not read: link_downed: input/output error"},
		{"nor does it hide a fault", up(func(x *Port) { x.Unread, x.Rate = []string{"link_downed: input/output error"}, 100 }), nil, checks.Fail, checks.Drain, "100 Gb/s, should be 400"},
		{"up for the first time", up(func(x *Port) { x.Past.Learned = nil }), nil, checks.Pass, checks.None, "up at 400 Gb/s"},
		{"not read", up(func(x *Port) { x.Err = "state: permission denied" }), nil, checks.Unknown, checks.None, "port not read: state: permission denied"},
		{"never cabled", downFor(time.Hour, func(x *Port) { x.Past.Learned = nil }), nil, checks.NotApplicable, checks.None, "never up on this node: DOWN Polling"},
		{"never cabled, switched off", downFor(time.Hour, func(x *Port) { x.Past.Learned, x.Disabled = nil, true }), nil, checks.NotApplicable, checks.None, "never up"},

		{"slower than it was", up(func(x *Port) { x.Rate = 200 }), nil, checks.Fail, checks.Drain, "200 Gb/s, should be 400"},
		{"slower by one than it was", up(func(x *Port) { x.Rate = 399 }), nil, checks.Fail, checks.Drain, "399 Gb/s"},
		{"faster than it was", up(func(x *Port) { x.Rate = 800 }), nil, checks.Pass, checks.None, "up at 800"},
		{"as fast as policy wants", up(func(x *Port) { x.Rate = 200 }), func(p *policy.Ports) { p.Rate = 200 }, checks.Pass, checks.None, "up at 200"},
		{"slower than policy wants", up(), func(p *policy.Ports) { p.Rate = 401 }, checks.Fail, checks.Drain, "400 Gb/s, should be 401"},

		{"down just now", downFor(0), nil, checks.Unknown, checks.Watch, "down (DOWN Polling) for 0s; a fault after 4m"},
		{"down almost long enough", downFor(4*minute - time.Second), nil, checks.Unknown, checks.Watch, "for 3m59s"},
		{"down long enough", downFor(4 * minute), nil, checks.Fail, checks.Drain, "down (DOWN Polling) for 4m0s"},
		{"switched off", downFor(4*minute, func(x *Port) { x.Disabled = true }), nil, checks.Fail, checks.FixConfig, "switched off for 4m0s"},
		{"gone from the kernel", downFor(4*minute, func(x *Port) { x.Missing = true }), nil, checks.Fail, checks.Drain, "the kernel shows the port no more for 4m0s"},
		{"gone from the kernel just now", downFor(time.Second, func(x *Port) { x.Missing = true }), nil, checks.Unknown, checks.Watch, "no more for 1s"},

		{"flapped too often", up(func(x *Port) { x.Past.HeldBy = 3 }), nil, checks.Fail, checks.Drain, "3 times down and up again within 12h"},
		{"flapped too often, down now", downFor(0, func(x *Port) { x.Past.HeldBy = 3 }), nil, checks.Fail, checks.Drain, "after 3 times down"},

		{"a counter at what it may rise", up(rose("link_downed", full(2))), nil, checks.Pass, checks.None, "up"},
		{"a counter one beyond", up(rose("link_downed", full(3))), nil, checks.Fail, checks.Drain, "link_downed rose by 3 within 3h"},
		{"a counter far beyond, in half a window", up(rose("link_downed", Count{Delta: strike.Delta{Rise: 99}})), nil, checks.Pass, checks.None, "up"},
		{"a counter that is only watched", up(rose("link_error_recovery", full(6))), nil, checks.Pass, checks.Watch, "link_error_recovery rose by 6 within 1m"},
		{"a counter that rose too far before", up(rose("link_downed", Count{Held: true})), nil, checks.Fail, checks.Drain, "rose too far earlier in this boot"},
		{"a counter that can show no more", up(rose("link_downed", Count{Delta: strike.Delta{Stuck: true, Full: true}})), nil, checks.Pass, checks.Watch, "can show no more"},
		{"a counter that policy no longer has", up(rose("gone", full(99))), nil, checks.Pass, checks.None, "up"},
		{"two faults and one to watch", up(func(x *Port) {
			x.Rate = 100
			x.Past.Counters = map[string]Count{"link_downed": full(9), "link_error_recovery": full(9)}
		}), nil, checks.Fail, checks.Drain, "100 Gb/s, should be 400; link_downed rose by 9 within 3h; link_error_recovery rose by 9 within 1m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := limits()
			if tt.policy != nil {
				tt.policy(&p)
			}
			fs := Judge(Infiniband, Reading{Have: checks.Read, Ports: []Port{tt.port}}, p)
			if len(fs) != 1 {
				t.Fatalf("got %+v", fs)
			}
			f := fs[0]
			if f.Verdict != tt.verdict || f.Action != tt.action || !strings.Contains(f.Reason, tt.reason) || f.Hard {
				t.Errorf("got %v, %v, hard %t, %q; want %v, %v, %q", f.Verdict, f.Action, f.Hard, f.Reason, tt.verdict, tt.action, tt.reason)
			}
			if f.Check != Infiniband || f.Subject.Key() != "port/0000:5d:00.0/portmlx5_3/1" {
				t.Errorf("a finding of %s about %s", f.Check, f.Subject.Key())
			}
		})
	}
}

func TestJudgeNode(t *testing.T) {
	two := []Port{up(), up(func(x *Port) { x.Name = "mlx5_4/1" })}
	for _, tt := range []struct {
		name    string
		reading Reading
		count   int
		want    string // of the last finding: verdict action
		reason  string
		n       int
	}{
		{"never read", Reading{}, 0, "unknown none", "ports not read", 1},
		{"could not be read", Reading{Err: "permission denied"}, 2, "unknown none", "ports not read: permission denied", 1},
		{"the driver does not answer", Reading{Err: "infiniband: not read within 5s", HungFor: 4*minute - time.Second}, 0, "unknown none", "not read within 5s", 1},
		{"the driver has not answered for long enough", Reading{Err: "infiniband: not read within 4m", HungFor: 4 * minute}, 0, "fail drain", "has not answered for 4m0s", 1},
		{"no such class", Reading{Have: checks.NotSupported}, 0, "not_applicable none", "the node shows no such port", 1},
		{"no port of the class", Reading{Have: checks.Read}, 0, "not_applicable none", "the node shows no such port", 1},
		{"as many as policy wants", Reading{Have: checks.Read, Ports: two}, 2, "pass none", "up", 2},
		{"more than policy wants", Reading{Have: checks.Read, Ports: two}, 1, "pass none", "up", 2},
		{"one fewer, for long enough", Reading{Have: checks.Read, Ports: two, ShortFor: 4 * minute}, 3, "fail drain", "2 ports up, policy wants 3; so for 4m0s", 3},
		{"one fewer, not long enough", Reading{Have: checks.Read, Ports: two, ShortFor: 4*minute - time.Second}, 3, "unknown watch", "a fault after 4m", 3},
		{"no driver, though policy wants ports", Reading{Have: checks.NotSupported, ShortFor: time.Hour}, 1, "fail drain", "0 ports up, policy wants 1", 1},
		{"the one that is down speaks for itself", Reading{Have: checks.Read, Ports: []Port{two[0], downFor(time.Hour)}, ShortFor: time.Hour}, 2, "fail drain", "down (DOWN Polling)", 2},
		{"one that was never up is one too few", Reading{Have: checks.Read, Ports: []Port{two[0], downFor(time.Hour, func(x *Port) { x.Past.Learned = nil })}, ShortFor: time.Hour}, 2, "fail drain", "1 ports up", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := limits()
			p.Count = tt.count
			fs := Judge(Ethernet, tt.reading, p)
			f := fs[len(fs)-1]
			if got := f.Verdict.String() + " " + f.Action.String(); got != tt.want || !strings.Contains(f.Reason, tt.reason) || len(fs) != tt.n {
				t.Errorf("%d findings, the last %s %q; want %d, %s %q", len(fs), got, f.Reason, tt.n, tt.want, tt.reason)
			}
		})
	}
}

// Ports are short from the first look that shows too few, and no longer.
func TestShortFor(t *testing.T) {
	book, p := strike.NewBook("b"), limits()
	p.Count = 1
	look := func(at time.Duration, ports ...Port) time.Duration {
		return Track(book, map[string]Learned{}, Infiniband, at, Reading{Have: checks.Read, Ports: ports}, p).ShortFor
	}
	if look(0, up()); look(minute, up()) != 0 {
		t.Error("short, with as many as policy wants")
	}
	if look(2 * minute); look(3*minute) != minute {
		t.Error("not short for a minute, with one too few")
	}
}

func TestFixtures(t *testing.T) {
	sound, fault := Reading{Have: checks.Read, Ports: []Port{up()}}, Reading{Have: checks.Read, Ports: []Port{downFor(time.Hour)}}
	checktest.Three(t, Infiniband, Judge(Infiniband, sound, limits()), Judge(Infiniband, fault, limits()), Judge(Infiniband, Reading{}, limits()))
	checktest.Three(t, Ethernet, Judge(Ethernet, sound, limits()), Judge(Ethernet, fault, limits()), Judge(Ethernet, Reading{}, limits()))
}

func TestJudgeWhatPolicyRequires(t *testing.T) {
	slow := func(x *Port) { x.Name, x.Rate, x.Past.Learned = "mlx5_7/1", 100, &Learned{Rate: 100} }
	for _, tt := range []struct {
		name    string
		require map[string]int
		reading Reading
		want    string
	}{
		{"one port of the rate is enough, as for NHC", map[string]int{"*": 400}, Reading{Ports: []Port{up(), up(slow)}}, ""},
		{"a faster one is", map[string]int{"*": 399}, Reading{Ports: []Port{up(slow), up()}}, ""},
		{"none of the rate", map[string]int{"*": 401}, Reading{Ports: []Port{up(slow), up()}}, "fail drain *: 400 Gb/s, policy requires 401"},
		{"whatever the rate", map[string]int{"mlx5_3": 0}, Reading{Ports: []Port{up(func(x *Port) { x.Rate = 0 })}}, ""},
		{"a rate that the kernel does not say", map[string]int{"mlx5_3": 1}, Reading{Ports: []Port{up(func(x *Port) { x.Rate = 0 })}}, "unknown none mlx5_3: the kernel does not say how fast, policy requires 1 Gb/s"},
		{"a device by name", map[string]int{"mlx5_7": 200}, Reading{Ports: []Port{up(slow), up()}}, "fail drain mlx5_7: 100 Gb/s, policy requires 200"},
		{"a port by name", map[string]int{"mlx5_3/1": 400, "mlx5_7/1": 100}, Reading{Ports: []Port{up(slow), up()}}, ""},
		{"a port that is not there", map[string]int{"mlx5_3/2": 400}, Reading{Ports: []Port{up()}, LackFor: 4*minute - 1}, "unknown watch mlx5_3/2: no such port is up, policy requires one; a fault after 4m"},
		{"for long", map[string]int{"mlx5_3/2": 400}, Reading{Ports: []Port{up()}, LackFor: 4 * minute}, "fail drain mlx5_3/2: no such port is up, policy requires one; so for 4m0s"},
		{"one never cabled", map[string]int{"*": 1}, Reading{Ports: []Port{downFor(time.Hour, func(x *Port) { x.Past.Learned = nil })}, LackFor: time.Hour}, "fail drain *: no such port is up, policy requires one; so for 1h0m0s"},
		{"what a port's own finding says is said once", map[string]int{"mlx5_3": 400}, Reading{Ports: []Port{downFor(time.Hour)}, LackFor: time.Hour}, ""},
		{"one that is down long hides no slow one", map[string]int{"*": 400}, Reading{Ports: []Port{downFor(time.Hour), up(slow)}}, "fail drain *: 100 Gb/s, policy requires 400"},
		{"one that may come back does", map[string]int{"*": 400}, Reading{Ports: []Port{downFor(minute), up(slow)}}, ""},
		{"unless it was as slow", map[string]int{"*": 401}, Reading{Ports: []Port{downFor(minute), up(slow)}}, "fail drain *: 100 Gb/s, policy requires 401"},
		{"one that could not be read may be the fast one", map[string]int{"*": 400}, Reading{Ports: []Port{up(func(x *Port) { x.Err, x.Up, x.Past = "state: permission denied", false, Past{} }), up(slow)}}, ""},
		{"one never cabled hides nothing", map[string]int{"*": 400}, Reading{Ports: []Port{downFor(minute, func(x *Port) { x.Past.Learned = nil }), up(slow)}}, "fail drain *: 100 Gb/s, policy requires 400"},
	} {
		p := limits()
		p.Require = tt.require
		tt.reading.Have = checks.Read
		var got []string
		for _, f := range Judge(Infiniband, tt.reading, p) {
			if f.Subject.Kind == checks.KindNode {
				got = append(got, f.Verdict.String()+" "+f.Action.String()+" "+f.Reason)
			}
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	book, learned, p := strike.NewBook("boot"), map[string]Learned{}, limits()
	p.Require = map[string]int{"mlx5_3": 0, "mlx5_4": 0}
	ports := func(upToo bool) []Port {
		return []Port{{Name: "mlx5_3/1", PCI: "0000:03:00.0", Up: true}, {Name: "mlx5_4/1", PCI: "0000:04:00.0", Up: upToo}}
	}
	for i, want := range []time.Duration{0, minute, 0, 0} {
		if r := Track(book, learned, Infiniband, time.Duration(i)*minute, Reading{Have: checks.Read, Ports: ports(i == 2)}, p); r.LackFor != want {
			t.Errorf("look %d: lacking for %s, want %s", i, r.LackFor, want)
		}
	}
}
