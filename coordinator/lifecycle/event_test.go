package lifecycle

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
)

// anyEvent draws events over a small world: few GPUs, boots and people, so that events meet one another.
func anyEvent(at func(*rapid.T) time.Time) *rapid.Generator[Event] {
	return rapid.Custom(func(t *rapid.T) Event {
		a := At{at(t)}
		by := rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "by")
		why := rapid.SampledFrom([]string{"cabling", "look at it", ""}).Draw(t, "why")
		switch rapid.SampledFrom(EventNames).Draw(t, "event") {
		case "enrol":
			return Enrol{a, rapid.Bool().Draw(t, "adopt"), "s1", by}
		case "seen":
			return Seen{a, drawInventory(t)}
		case "hard_fault":
			return HardFault{a, drawFinding(t, true), drawJob(t), rapid.Bool().Draw(t, "own")}
		case "soft_fault":
			return SoftFault{a, drawFinding(t, false), drawJob(t)}
		case "reset_wanted":
			f := drawFinding(t, false)
			f.Verdict, f.Action = checks.Pass, checks.ResetGPU
			return ResetWanted{a, f}
		case "screened":
			ev := Screened{At: a, Screen: rapid.SampledFrom([]string{"", "this", "other"}).Draw(t, "screen"),
				Why:     rapid.SampledFrom([]checks.Why{checks.WhyProlog, checks.WhyScreen, checks.WhyBackground}).Draw(t, "why"),
				Level:   checks.Level(rapid.IntRange(0, int(checks.Intake)).Draw(t, "level")),
				Verdict: rapid.SampledFrom([]checks.Verdict{checks.Pass, checks.Pass, checks.Fail, checks.Unknown}).Draw(t, "verdict"),
				Tested:  []string{"ecc", "xid"}, Suite: "5f2e", Inventory: drawInventory(t)}
			if ev.Verdict == checks.Fail {
				ev.Findings = []checks.Finding{drawFinding(t, rapid.Bool().Draw(t, "hard"))}
			}
			return ev
		case "expired":
			return Expired{a}
		case "jobs_changed":
			return JobsChanged{a, rapid.SampledFrom([][]JobRef{nil, nil, {{"7", 1, 0}}, {{"7", 1, 2}, {"8", 16, 0}}}).Draw(t, "jobs")}
		case "slurm_drained":
			return SlurmDrained{a, by, rapid.SampledFrom([]string{"cabling", "Kill task failed", "Prolog error"}).Draw(t, "reason"), rapid.Bool().Draw(t, "slurm")}
		case "slurm_resumed":
			return SlurmResumed{a, by}
		case "slurm_reason":
			return SlurmReason{a, by, rapid.SampledFrom([]string{"mine", "Kill task failed", "gres/gpu count reported lower than configured (7 < 8)"}).Draw(t, "reason"), rapid.Bool().Draw(t, "slurm")}
		case "slurm_undrained":
			return SlurmUndrained{a, by}
		case "effect_ended":
			return EffectEnded{a, "this", rapid.SampledFrom(EffectKinds).Draw(t, "kind"),
				rapid.SampledFrom([]string{"done", "done", "failed", "skipped"}).Draw(t, "outcome"), why}
		case "deadline_passed":
			return DeadlinePassed{a}
		case "silent":
			return Silent{a}
		case "back":
			return Back{a}
		case "room":
			return Room{a}
		case "order_drain":
			return OrderDrain{a, by, why}
		case "order_resume":
			return OrderResume{a, by, why, rapid.SampledFrom([]string{"", "", RiskNoCertificate}).Draw(t, "risk")}
		case "order_cancel":
			return OrderCancel{a, by, why}
		case "order_hold":
			return OrderHold{a, by, why, rapid.SampledFrom([]time.Time{{}, a.Time.Add(2 * time.Hour)}).Draw(t, "until")}
		case "order_unhold":
			return OrderUnhold{a, by, rapid.SampledFrom([]string{"", "alice"}).Draw(t, "owner")}
		case "order_rma":
			return OrderRMA{a, by, why}
		case "order_repaired":
			return OrderRepaired{a, by, "same part: no fault found"}
		case "order_case":
			return OrderCase{a, by, why, rapid.SampledFrom([]string{"Q-0001", "Q-0002"}).Draw(t, "case"),
				rapid.SampledFrom([]string{CaseTake, CaseGive, CaseExtend, CaseClose}).Draw(t, "verb"),
				rapid.SampledFrom([]time.Time{{}, a.Time.Add(2 * time.Hour)}).Draw(t, "until")}
		default:
			return OrderRetire{a, by, why}
		}
	})
}

func drawInventory(t *rapid.T) checks.Inventory {
	inv := checks.Inventory{Node: "gpu001", BootID: rapid.SampledFrom([]string{"b1", "b1", "b1", "b2", "b3", ""}).Draw(t, "boot"),
		Driver: rapid.SampledFrom([]string{"550", "550", "570", ""}).Draw(t, "driver"), NodeSerial: "H1"}
	for i := range rapid.SampledFrom([]int{2, 2, 2, 1, 3, 0}).Draw(t, "gpus") {
		inv.GPUs = append(inv.GPUs, checks.GPU{Node: "gpu001", UUID: "GPU-" + string(rune('a'+i)), Index: i, PCI: "0000:1b:00.0", Name: "NVIDIA H100 80GB HBM3"})
	}
	return inv
}

func drawFinding(t *rapid.T, hard bool) checks.Finding {
	i := rapid.IntRange(0, 1).Draw(t, "gpu")
	f := checks.Finding{Check: rapid.SampledFrom([]string{"xid", "ecc", "rowremap"}).Draw(t, "check"), Verdict: checks.Fail, Hard: hard,
		Subject: checks.Subject{Kind: checks.KindGPU, Node: "gpu001", GPUIndex: &i, GPUUUID: "GPU-" + string(rune('a'+i))},
		Action:  checks.Action(rapid.IntRange(int(checks.ResetGPU), int(checks.RMA)).Draw(t, "action")),
		Reason:  "seen \"it\", in (numbers) = 7", BootID: rapid.SampledFrom([]string{"", "b1", "b2"}).Draw(t, "boot")}
	if f.Check == "xid" {
		f.Code = rapid.SampledFrom([]int{48, 79}).Draw(t, "code")
	}
	return f
}

func drawJob(t *rapid.T) *checks.Job {
	return rapid.SampledFrom([]*checks.Job{nil, {ID: "7", Restarts: 1, User: "carol", Nodes: 4, GPUs: []int{0, 1}}, {ID: "8"}, {ID: "9", GPUs: []int{}}}).Draw(t, "job")
}

func TestEventTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ev := anyEvent(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		}).Draw(t, "event")
		back, err := ParseEvent(ev.String())
		if err != nil {
			t.Fatalf("%s: %v", ev, err)
		}
		if !reflect.DeepEqual(back, ev) {
			t.Fatalf("%s\nreads back as\n%#v\nwant\n%#v", ev, back, ev)
		}
	})
}

// TestEventTextKeepsAnyText: the free text of a report is hostile; no text may be read back as another.
func TestEventTextKeepsAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		ev := Screened{At: At{time.Unix(5, 0).UTC()}, Findings: []checks.Finding{{Check: text, Reason: text, Verdict: checks.Fail}}, Tested: []string{text, "x"}}
		back, err := ParseEvent(ev.String())
		if err != nil {
			t.Fatalf("%s: %v", ev, err)
		}
		if !reflect.DeepEqual(back, ev) {
			t.Fatalf("%s\nreads back as\n%s", ev, back)
		}
		if strings.ContainsAny(ev.String(), "\n\r\x00") {
			t.Fatalf("%q is not one line", ev.String())
		}
	})
}

func TestParseEventSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"no such event", "faulted check=xid", `event "faulted": want one of enrol`},
		{"no such key", "silent since=now", "event silent: since: no such key here"},
		{"a key given twice", "room at=2026-11-29T20:00:00Z at=2026-11-29T20:00:00Z", "at: no such key here, or given twice"},
		{"no value", "silent at", `at "at": want key=value`},
		{"not a number", "hard_fault code=many", `code: strconv.Atoi`},
		{"not a verdict", "screened verdict=fine", `verdict "fine"`},
		{"not yes or no", "enrol adopt=true", `adopt: "true": want yes or no`},
		{"not a time", "back at=now", "at: parsing time"},
		{"unfinished quote", `order_drain reason="a`, "unfinished quote"},
		{"unfinished parenthesis", `jobs_changed job=(id=7`, "unfinished parenthesis"},
		{"a list where a word belongs", `order_drain reason=(a=b)`, "parentheses not wanted"},
		{"a word where a list belongs", `jobs_changed job=7`, "parentheses wanted"},
		{"text after a quote", `order_drain reason="a"b`, "want a space"},
		{"a wrong key inside", `jobs_changed job=(id=7 colour=red)`, "job: colour: no such key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseEvent(c.line)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseEvent(%q): %v, want %q in it", c.line, err, c.want)
			}
		})
	}
}

func TestEveryEventHasAReader(t *testing.T) {
	for _, name := range EventNames {
		ev, err := ParseEvent(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := Name(ev); got != name {
			t.Errorf("%s reads as %s", name, got)
		}
	}
	if len(readers) != len(EventNames) {
		t.Errorf("%d readers for %d names", len(readers), len(EventNames))
	}
}

func FuzzParseEvent(f *testing.F) {
	for _, s := range []string{"silent", `hard_fault at=2026-11-29T20:11:03Z check=xid code=79 kind=gpu gpu=3 action=reboot reason="fell off"`,
		`screened level=quick verdict=pass gpu=(index=0 uuid=GPU-a) finding=(check=ecc reason="a (b")`, "jobs_changed job=(id=7) job=(id=8 nodes=2)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		ev, err := ParseEvent(line)
		if err != nil {
			return
		}
		again, err := ParseEvent(ev.String())
		if err != nil {
			t.Fatalf("%q reads as %q, which does not read back: %v", line, ev, err)
		}
		if again.String() != ev.String() {
			t.Fatalf("%q reads as %q and then as %q", line, ev, again)
		}
	})
}
