package checks

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const gap, cause = 30 * time.Second, 45 * time.Second

func xidAt(s float64, gpu string, code int, v Verdict, a Action, hard bool) Finding {
	return Finding{
		Check: "xid", Code: code, Subject: Subject{Kind: KindGPU, PCI: gpu}, Verdict: v, Action: a, Hard: hard,
		At: start.Add(time.Duration(s * float64(time.Second))), BootID: "boot",
	}
}

func lostAt(s float64, gpu string) Finding     { return xidAt(s, gpu, 79, Fail, Reboot, true) }
func dbeAt(s float64, gpu string) Finding      { return xidAt(s, gpu, 48, Fail, ResetGPU, true) }
func teardownAt(s float64, gpu string) Finding { return xidAt(s, gpu, 45, NotApplicable, None, false) }
func switchAt(s float64, sw string) Finding {
	f := xidAt(s, sw, 20034, Fail, Reboot, false)
	f.Check, f.Subject.Kind = "sxid", KindSwitch
	return f
}

func linkAt(s float64, gpu string, code int, v Verdict, a Action) Finding {
	return xidAt(s, gpu, code, v, a, v == Fail)
}
func peerAt(s float64, gpu string, code int) Finding {
	f := xidAt(s, gpu, code, NotApplicable, Watch, false)
	f.Peer = true
	return f
}
func wordsAt(s float64, v Verdict, a Action) Finding {
	f := xidAt(s, "", 0, v, a, v == Fail)
	f.Check, f.Subject.Kind = "nvrm", KindNode
	return f
}
func aerAt(s float64, gpu string, v Verdict, a Action) Finding {
	f := xidAt(s, gpu, 0, v, a, false)
	f.Check = "aer"
	return f
}

func with(f Finding, change func(*Finding)) Finding {
	change(&f)
	return f
}

// shape prints the incidents of fs in the order of the findings: a letter for each incident, upper case for a root.
func shape(fs []Finding) string {
	letters := map[string]string{}
	var out []string
	for _, f := range fs {
		switch {
		case f.Incident == "" && f.Secondary:
			out = append(out, "?")
		case f.Incident == "":
			out = append(out, "-")
		default:
			l, ok := letters[f.Incident]
			if !ok {
				l = string(rune('a' + len(letters)))
				letters[f.Incident] = l
			}
			if !f.Secondary {
				l = strings.ToUpper(l)
			}
			out = append(out, l)
		}
	}
	return strings.Join(out, " ")
}

func TestGroupIncidents(t *testing.T) {
	byBoot := func(b string) func(*Finding) { return func(f *Finding) { f.BootID = b } }
	named := func(c int) func(*Finding) { return func(f *Finding) { f.Cause = c } }
	uuid := func(u string) func(*Finding) { return func(f *Finding) { f.Subject.GPUUUID = u } }
	lostCall := Finding{
		Check: "driver", Subject: Subject{Kind: KindGPU, GPUUUID: "GPU-1", PCI: "g1"}, Verdict: Fail, Action: Reboot, Hard: true, At: start.Add(5 * time.Second), BootID: "boot",
	}
	countLow := Finding{Check: "inventory", Subject: Subject{Kind: KindNode}, Verdict: Fail, Action: Reboot, Hard: true, At: start.Add(6 * time.Second), BootID: "boot"}
	remapPending := Finding{Check: "rowremap", Subject: Subject{Kind: KindGPU, PCI: "g1"}, Verdict: Pass, Action: ResetGPU, At: start.Add(9 * time.Second), BootID: "boot"}
	for _, tt := range []struct {
		name string
		in   []Finding
		want string
	}{
		{"one fault is its own root", []Finding{dbeAt(0, "g1")}, "A"},
		{"faults of two GPUs are two", []Finding{dbeAt(0, "g1"), dbeAt(1, "g2")}, "A B"},
		{"a lost GPU and its switches' view count once", []Finding{lostAt(0, "g1"), switchAt(12, "s1"), switchAt(12, "s0"), switchAt(13, "s2")}, "A a a a"},
		{"the switch may speak first", []Finding{switchAt(0, "s1"), lostAt(12, "g1")}, "a A"},
		{"a switch that speaks a minute later speaks of something else", []Finding{lostAt(0, "g1"), switchAt(30.001, "s1")}, "A B"},
		{"at the gap itself it still belongs", []Finding{lostAt(0, "g1"), switchAt(30, "s1")}, "A a"},
		{"a switch alone", []Finding{switchAt(0, "s1"), switchAt(1, "s2")}, "A B"},
		{"switches do not go with a fault that loses no GPU", []Finding{dbeAt(0, "g1"), switchAt(1, "s1")}, "A B"},
		{"links of the peers of a lost GPU", []Finding{lostAt(0, "g1"), xidAt(1, "g2", 74, Fail, Drain, false), xidAt(1, "g3", 149, Fail, Drain, false)}, "A a a"},
		{"a link's other ends speak of its fault", []Finding{linkAt(0, "g1", 149, Fail, ResetGPU), peerAt(1, "g2", 145), peerAt(2, "g3", 149)}, "A a a"},
		{"the other ends may speak first", []Finding{peerAt(0, "g2", 145), peerAt(1, "g3", 145), linkAt(30.5, "g1", 149, Fail, ResetGPU)}, "A b B"},
		{"at the gap itself they still belong", []Finding{linkAt(0, "g1", 149, Fail, ResetGPU), peerAt(30, "g2", 145)}, "A a"},
		{"and not after it", []Finding{linkAt(0, "g1", 149, Fail, ResetGPU), peerAt(30.001, "g2", 145)}, "A B"},
		{"other ends alone are each their own", []Finding{peerAt(0, "g1", 145), peerAt(1, "g2", 145)}, "A B"},
		{"a link fault that blames no one is its own", []Finding{linkAt(0, "g1", 149, Fail, ResetGPU), linkAt(1, "g2", 149, Fail, ResetGPU)}, "A B"},
		{"a hard fault hides behind no other GPU's link", []Finding{linkAt(0, "g1", 149, Fail, ResetGPU), with(peerAt(1, "g2", 149), func(f *Finding) { f.Verdict, f.Action, f.Hard = Fail, ResetGPU, true })}, "A B"},
		{"words go with the number near them", []Finding{dbeAt(0, "g1"), wordsAt(30, Fail, ResetGPU)}, "A a"},
		{"words may come first", []Finding{wordsAt(0, Fail, ResetGPU), dbeAt(30, "g1")}, "A a"},
		{"words that ask for more are the root", []Finding{wordsAt(0, Fail, Reboot), dbeAt(1, "g1")}, "A a"},
		{"words of another time", []Finding{dbeAt(0, "g1"), wordsAt(30.001, Fail, ResetGPU)}, "A B"},
		{"words and a number that is no fault", []Finding{teardownAt(0, "g1"), wordsAt(1, Fail, ResetGPU)}, "A B"},
		{"words that are no fault", []Finding{dbeAt(0, "g1"), wordsAt(1, NotApplicable, Watch)}, "A B"},
		{"the path of a lost GPU, half an hour later", []Finding{lostAt(0, "g1"), aerAt(2031, "g1", NotApplicable, Watch), aerAt(9000, "g1", Fail, Drain)}, "A a a"},
		{"the path before the loss, long ago", []Finding{aerAt(0, "g1", Fail, Drain), lostAt(104, "g1")}, "A B"},
		{"the path just before the loss", []Finding{aerAt(0, "g1", Fail, Drain), lostAt(0.1, "g1")}, "a A"},
		{"the path of another GPU", []Finding{lostAt(0, "g1"), aerAt(10, "g2", Fail, Drain)}, "A B"},
		{"the path in another boot", []Finding{lostAt(0, "g1"), with(aerAt(10, "g1", Fail, Drain), byBoot("later"))}, "A B"},
		{"two GPUs lost at once are two", []Finding{lostAt(0, "g1"), lostAt(1, "g2"), switchAt(2, "s1")}, "A B a"},
		{"double bit error, remap, contained: one event", []Finding{dbeAt(0, "g1"), xidAt(0.02, "g1", 63, Pass, ResetGPU, false), xidAt(0.03, "g1", 94, NotApplicable, RestartApp, false)}, "A a a"},
		{"the severest is the root, not the first", []Finding{xidAt(0, "g1", 63, Pass, ResetGPU, false), dbeAt(0.02, "g1"), xidAt(0.03, "g1", 64, Fail, RMA, true)}, "a a A"},
		{"a hard one before a soft one of severer action", []Finding{xidAt(0, "g1", 74, Fail, Drain, false), dbeAt(1, "g1")}, "a A"},
		{"of two alike the first is the root", []Finding{dbeAt(0, "g1"), dbeAt(1, "g1")}, "A a"},
		{"the driver's verdict decides, though it comes last", []Finding{dbeAt(0, "g1"), xidAt(1, "g1", 154, Fail, ResetGPU, true)}, "a A"},
		{"the driver's verdict outranks a severer text or number", []Finding{lostAt(0, "g1"), xidAt(0, "g1", 64, Fail, RMA, true), xidAt(1, "g1", 154, Fail, ResetGPU, true)}, "a a A"},
		{"NVML states it as well", []Finding{lostAt(0, "g1"), with(xidAt(1, "g1", 0, Fail, ResetGPU, true), func(f *Finding) { f.Check = "recovery" })}, "a A"},
		{"it does not outrank what was read from the GPU", []Finding{with(xidAt(0, "g1", 0, Fail, RMA, true), func(f *Finding) { f.Check = "rowremap" }), xidAt(1, "g1", 154, Fail, ResetGPU, true)}, "A a"},
		{"nor what the log says of another GPU", []Finding{lostAt(0, "g1"), xidAt(1, "g2", 74, Fail, Drain, false), xidAt(2, "g2", 154, Fail, ResetGPU, true)}, "A a a"},
		{"a soft verdict does not hide a hard fault", []Finding{dbeAt(0, "g1"), xidAt(1, "g1", 154, Fail, Drain, false)}, "A a"},
		{"a verdict taken back decides nothing", []Finding{dbeAt(0, "g1"), xidAt(1, "g1", 154, NotApplicable, None, false)}, "A a"},
		{"a teardown follows from the fault on its GPU", []Finding{dbeAt(0, "g1"), teardownAt(2, "g1")}, "A a"},
		{"a teardown on a peer too, within the cause's time", []Finding{dbeAt(0, "g1"), teardownAt(45, "g2")}, "A a"},
		{"and not after it", []Finding{dbeAt(0, "g1"), teardownAt(45.001, "g2")}, "A B"},
		{"a teardown before the fault on its GPU is no root", []Finding{teardownAt(0, "g1"), dbeAt(1, "g1")}, "a A"},
		{"a teardown alone is all there is", []Finding{teardownAt(0, "g1")}, "A"},
		{"a teardown that names a cause is secondary without it", []Finding{with(teardownAt(0, "g1"), named(149))}, "a"},
		{"a fault that names a cause which nobody saw is one all the same", []Finding{with(xidAt(0, "g1", 149, Fail, ResetGPU, true), named(144))}, "A"},
		{"it does not hide behind a cause that was only watched", []Finding{xidAt(0, "g1", 144, NotApplicable, Watch, false), with(xidAt(1, "g1", 149, Fail, ResetGPU, true), named(144))}, "a A"},
		{"nor is it a fault of its own beside a cause as severe", []Finding{dbeAt(0, "g1"), with(xidAt(1, "g1", 95, Fail, ResetGPU, true), named(48))}, "A a"},
		{"a teardown goes with the cause it names, not the last fault", []Finding{
			xidAt(0, "g1", 149, Fail, Drain, false), dbeAt(1, "g2"), with(teardownAt(2, "g3"), named(149)), with(teardownAt(2, "g4"), named(48)),
		}, "A B a b"},
		{"of two such causes it goes with its own GPU's", []Finding{
			xidAt(0, "g1", 145, Fail, Drain, false), xidAt(1, "g2", 145, Fail, Drain, false), with(teardownAt(40, "g1"), named(145)),
		}, "A B a"},
		{"two faults of one GPU, at the gap", []Finding{dbeAt(0, "g1"), xidAt(30, "g1", 95, Fail, ResetGPU, true)}, "A a"},
		{"two faults of one GPU, after the gap", []Finding{dbeAt(0, "g1"), xidAt(30.001, "g1", 95, Fail, ResetGPU, true)}, "A B"},
		{"each within the gap of the one before it", []Finding{dbeAt(0, "g1"), xidAt(20, "g1", 95, Fail, ResetGPU, true), xidAt(40, "g1", 140, Fail, ResetGPU, true)}, "A a a"},
		{"a cause that is named, at its time's end", []Finding{xidAt(0, "g1", 149, Fail, Drain, false), with(teardownAt(45, "g2"), named(149))}, "A a"},
		{"a cause that is named, too long ago", []Finding{xidAt(0, "g1", 149, Fail, Drain, false), with(teardownAt(45.001, "g2"), named(149))}, "A b"},
		{"a hung GPU says so every 45 s", []Finding{xidAt(0, "g1", 119, Fail, ResetGPU, true), xidAt(45, "g1", 119, Fail, ResetGPU, true), xidAt(90, "g1", 119, Fail, ResetGPU, true)}, "A a a"},
		{"at twice the cause's time a repeat still belongs", []Finding{xidAt(0, "g1", 119, Fail, ResetGPU, true), xidAt(90, "g1", 119, Fail, ResetGPU, true)}, "A a"},
		{"after it the repeat is news", []Finding{xidAt(0, "g1", 119, Fail, ResetGPU, true), xidAt(90.001, "g1", 119, Fail, ResetGPU, true)}, "A B"},
		{"another boot is another incident", []Finding{lostAt(0, "g1"), with(lostAt(1, "g1"), byBoot("later")), with(switchAt(2, "s1"), byBoot("later"))}, "A B b"},
		{"the log knows the address, NVML the UUID too", []Finding{lostAt(0, "g1"), lostCall, countLow}, "A a a"},
		{"a UUID alone", []Finding{with(lostAt(0, ""), uuid("GPU-1")), lostCall}, "A a"},
		{"an instance's fault belongs to its GPU", []Finding{with(dbeAt(0, "g1"), func(f *Finding) { f.Subject.Kind, f.Subject.MIG = KindMIG, "3/0" }), dbeAt(1, "g1")}, "A a"},
		{"a pending remap follows from the error it mends", []Finding{dbeAt(0, "g1"), remapPending}, "A a"},
		{"a pending remap alone", []Finding{remapPending}, "A"},
		{"what is well or unread belongs to none", []Finding{{Verdict: Pass, Subject: Subject{PCI: "g1"}}, dbeAt(0, "g1"), {Subject: Subject{PCI: "g1"}}, {Verdict: NotApplicable}}, "- A - -"},
		{"what is watched is an event, without a number too", []Finding{with(aerAt(0, "g1", NotApplicable, Watch), func(*Finding) {})}, "A"},
		{"old marks are forgotten", []Finding{{Verdict: Pass, Incident: "I-0", Secondary: true}, with(dbeAt(0, "g1"), func(f *Finding) { f.Secondary = true })}, "- A"},
		{"two checks of a whole node do not share a cause", []Finding{
			{Check: "a", Subject: Subject{Kind: KindNode}, Verdict: Fail}, {Check: "b", Subject: Subject{Kind: KindNode}, Verdict: Fail},
		}, "A B"},
		{"a GPU and a switch at one address are two parts", []Finding{dbeAt(0, "x"), with(switchAt(1, "x"), func(*Finding) {})}, "A B"},
		{"the order given does not matter", []Finding{switchAt(12, "s1"), teardownAt(3, "g2"), lostAt(0, "g1")}, "a a A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shape(GroupIncidents(tt.in, gap, cause)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestIncidentKeepsItsNameWhenMoreJoins(t *testing.T) {
	one := GroupIncidents([]Finding{lostAt(0, "g1")}, gap, cause)
	two := GroupIncidents([]Finding{lostAt(0, "g1"), switchAt(12, "s1")}, gap, cause)
	if one[0].Incident == "" || one[0].Incident != two[0].Incident {
		t.Errorf("first %q, then %q", one[0].Incident, two[0].Incident)
	}
	if again := GroupIncidents([]Finding{lostAt(0.9, "g1")}, gap, cause); again[0].Incident != one[0].Incident {
		t.Errorf("within one second it is %q, then %q", one[0].Incident, again[0].Incident)
	}
	if later := GroupIncidents([]Finding{lostAt(1, "g1")}, gap, cause); later[0].Incident == one[0].Incident {
		t.Error("a second later it has the same name")
	}
	for name, other := range map[string]Finding{
		"another boot": with(lostAt(0, "g1"), func(f *Finding) { f.BootID = "b2" }), "another GPU": lostAt(0, "g2"), "another code": dbeAt(0, "g1"),
	} {
		if got := GroupIncidents([]Finding{other}, gap, cause); got[0].Incident == one[0].Incident {
			t.Errorf("%s has the same name", name)
		}
	}
}

func TestGroupIncidentsDoesNotChangeItsInput(t *testing.T) {
	in := []Finding{lostAt(0, "g1"), switchAt(1, "s1")}
	GroupIncidents(in, gap, cause)
	if in[0].Incident != "" || in[1].Secondary {
		t.Error("the findings given were changed")
	}
}

func TestGroupIncidentsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 30).Draw(t, "findings")
		got := GroupIncidents(fs, gap, cause)
		roots, members := map[string]int{}, map[string][]Finding{}
		for i, f := range got {
			if f.Verdict != fs[i].Verdict || f.Code != fs[i].Code || f.Subject != fs[i].Subject {
				t.Fatalf("finding %d is another now", i)
			}
			if !isEvent(f) {
				if f.Incident != "" || f.Secondary {
					t.Fatalf("%+v is in an incident", f)
				}
				continue
			}
			if f.Incident == "" {
				t.Fatalf("%+v is in no incident", f)
			}
			members[f.Incident] = append(members[f.Incident], f)
			if !f.Secondary {
				roots[f.Incident]++
			}
		}
		for id, fs := range members {
			named := func(f Finding) bool { return f.Cause != 0 }
			if n := roots[id]; n > 1 || n == 0 && !slices.ContainsFunc(fs, named) {
				t.Fatalf("incident %s has %d roots", id, n)
			}
			var root Finding
			for _, f := range fs {
				if !f.Secondary {
					root = f
				}
			}
			for _, f := range fs {
				if f.BootID != fs[0].BootID {
					t.Fatalf("incident %s spans boots", id)
				}
				// A hard fault is never hidden behind a softer root.
				severe := root.Verdict == Fail && root.Hard && (root.Action >= f.Action || f.Check == "xid" && slices.ContainsFunc(fs, Finding.isVerdict))
				if f.Verdict == Fail && f.Hard && !f.isTeardown() && !severe {
					t.Fatalf("%+v hides behind %+v", f, root)
				}
				if root.isTeardown() && f.Cause == 0 && !f.isTeardown() {
					t.Fatalf("a teardown is the root of %+v", f)
				}
			}
		}
		shuffled := rapid.Permutation(fs).Draw(t, "shuffled")
		if a, b := canonical(got), canonical(GroupIncidents(shuffled, gap, cause)); a != b {
			t.Fatalf("order matters:\n%s\n%s", a, b)
		}
		if a, b := canonical(got), canonical(GroupIncidents(got, gap, cause)); a != b {
			t.Fatalf("a second time it differs:\n%s\n%s", a, b)
		}
	})
}

func drawEvent(t *rapid.T) Finding {
	f := Finding{
		Check:  rapid.SampledFrom([]string{"xid", "xid", "xid", "sxid", "aer", "nvrm", "driver", "inventory", "rowremap", "recovery"}).Draw(t, "check"),
		BootID: rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "boot"), At: start.Add(time.Duration(rapid.IntRange(0, 240).Draw(t, "s")) * time.Second),
		Verdict: rapid.SampledFrom([]Verdict{Fail, Fail, Pass, NotApplicable, Unknown}).Draw(t, "verdict"), Action: Action(rapid.IntRange(0, int(RMA)).Draw(t, "action")),
		Subject: Subject{Kind: KindGPU, PCI: rapid.SampledFrom([]string{"g1", "g2", "g3", ""}).Draw(t, "pci")},
	}
	f.Hard = f.Verdict == Fail && rapid.Bool().Draw(t, "hard")
	switch f.Check {
	case "xid":
		f.Code = rapid.SampledFrom([]int{45, 48, 63, 74, 79, 119, 149, 154}).Draw(t, "code")
		f.Peer = rapid.Bool().Draw(t, "peer")
		if f.Code == 45 && rapid.Bool().Draw(t, "names a cause") {
			f.Cause = rapid.SampledFrom([]int{48, 149}).Draw(t, "cause")
		}
	case "sxid":
		f.Code, f.Subject.Kind = 20034, KindSwitch
	case "nvrm":
		if f.Subject.PCI == "" {
			f.Subject.Kind = KindNode
		}
	default:
		if rapid.Bool().Draw(t, "uuid") && f.Subject.PCI != "" {
			f.Subject.GPUUUID = "GPU-" + f.Subject.PCI
		}
	}
	return f
}

func canonical(fs []Finding) string {
	lines := make([]string, 0, len(fs))
	for _, f := range fs {
		lines = append(lines, fmt.Sprintf("%s %s %d %s %s %s %t %t %d %d %s %t", f.BootID, f.Check, f.Code, f.Subject.Key(), f.Verdict, f.Action, f.Hard, f.Peer, f.Cause, f.At.Unix(), f.Incident, f.Secondary))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestAFloodIsOneIncident(t *testing.T) {
	// NVSentinel 1710: 168,924 lines of XID 45 and ten of everything else.
	fs := []Finding{xidAt(0, "g0", 149, Fail, Drain, false)}
	for i := range 168_924 {
		f := teardownAt(float64(i)/10_000, fmt.Sprintf("g%d", i%8))
		f.Cause = 149
		fs = append(fs, f)
	}
	got := Collapse(GroupIncidents(fs, gap, cause)) // a second or so; were it quadratic, the test would time out
	if len(got) != 9 || got[0].Secondary || got[1].Count+got[2].Count < 2*21_000 {
		t.Errorf("%d findings left: %v", len(got), shape(got))
	}
	total := 0
	for _, f := range got {
		total += max(f.Count, 1)
	}
	if total != len(fs) {
		t.Errorf("%d of %d lines counted", total, len(fs))
	}
	if roots := slices.DeleteFunc(slices.Clone(got), func(f Finding) bool { return f.Secondary }); len(roots) != 1 {
		t.Errorf("%d roots", len(roots))
	}
}

func TestCollapse(t *testing.T) {
	a, b := dbeAt(0, "g1"), dbeAt(0, "g2")
	counted := with(a, func(f *Finding) { f.Count = 5 })
	milder := with(a, func(f *Finding) { f.Verdict, f.Action, f.Hard = NotApplicable, Watch, false })
	got := Collapse([]Finding{a, b, a, milder, counted})
	var counts []int
	for _, f := range got {
		counts = append(counts, f.Count)
	}
	if want := []int{7, 0, 0}; !slices.Equal(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
	if got[0].Subject.PCI != "g1" || got[1].Subject.PCI != "g2" || got[2].Action != Watch {
		t.Errorf("the order changed: %+v", got)
	}
}

// What is folded into one finding names each part that it is of, once, and of many the first.
func TestCollapseNamesTheParts(t *testing.T) {
	var fs []Finding
	add := func(of ...string) {
		for _, o := range of {
			fs = append(fs, Finding{Check: "hostlog", Verdict: Fail, Action: Reboot, Of: o, Reason: o + " hangs"})
		}
	}
	add("a", "a", "b", "", "a", "c", "b")
	got := Collapse(fs)
	if len(got) != 1 || got[0].Count != 7 || got[0].Reason != "a hangs; also b, c" {
		t.Errorf("%+v", got)
	}
	again := Collapse(append(got, Collapse(fs)...))
	if len(again) != 1 || again[0].Reason != "a hangs; also b, c" {
		t.Errorf("folded twice: %+v", again)
	}
	add("d", "e", "f", "g", "h", "i", "j", "i")
	if got := Collapse(fs); got[0].Reason != "a hangs; also b, c, d, e, f, g, h and others" {
		t.Errorf("%q", got[0].Reason)
	}
	if got := Collapse([]Finding{{Reason: "x"}, {Reason: "y", Of: "y"}}); len(got) != 1 || got[0].Reason != "x" {
		t.Errorf("%+v", got)
	}
}
