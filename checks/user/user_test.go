package user

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func line(f checks.Finding) string {
	who := f.Subject.Key()
	if f.Subject.GPUIndex != nil {
		who += fmt.Sprintf(" %d", *f.Subject.GPUIndex)
	}
	s := fmt.Sprintf("%s %s %s", who, f.Verdict, f.Action)
	if f.Code != 0 {
		s += fmt.Sprintf(" code=%d", f.Code)
	}
	return s + ": " + f.Reason
}

func TestJudge(t *testing.T) {
	nagios, asJSON, exit := policy.UserCheck{}, policy.UserCheck{Format: "json"}, policy.UserCheck{Format: "exit"}
	for _, tt := range []struct {
		name string
		u    policy.UserCheck
		o    Outcome
		want string
	}{
		{"could not be run", nagios, Outcome{Err: "no such file"}, "node unknown none: not run: no such file"},
		{"too slow", nagios, Outcome{TimedOut: true, Exit: 2}, "node unknown none: did not end within 30s"},
		{"too slow for a time of its own", policy.UserCheck{Timeout: policy.Duration(2e9)}, Outcome{TimedOut: true}, "node unknown none: did not end within 2s"},
		{"cannot be ended", nagios, Outcome{TimedOut: true, Stuck: true}, "node unknown watch: it is still there after SIGKILL"},
		{"too much output", nagios, Outcome{Cut: true}, "node unknown none: printed more than 65536 bytes"},
		{"crashed", nagios, Outcome{Signal: "SIGSEGV", Stderr: "a\nb\n"}, "node unknown none: ended by SIGSEGV: b"},
		{"OK", nagios, Outcome{Stdout: "DISK OK - 5% used | /=5%;90;95\nmore\n"}, "node pass none: DISK OK - 5% used"},
		{"OK, without a word", nagios, Outcome{}, "node pass none: exit status 0, and it says nothing"},
		{"WARNING", nagios, Outcome{Exit: 1, Stdout: "hm"}, "node pass watch: hm"},
		{"CRITICAL", nagios, Outcome{Exit: 2, Stdout: "\n full \n"}, "node fail drain: full"},
		{"UNKNOWN", nagios, Outcome{Exit: 3, Stdout: "who knows"}, "node unknown none: who knows"},
		{"a status that no plugin has", nagios, Outcome{Exit: 4, Stdout: "x"}, "node unknown none: exit status 4 is none of a Nagios plugin's: x"},
		{"a shell that found nothing to run", nagios, Outcome{Exit: 127, Stderr: "not found"}, "node unknown none: exit status 127 is none of a Nagios plugin's: not found"},
		{"exit 0", exit, Outcome{}, "node pass none: exit status 0"},
		{"exit 0, with a word", exit, Outcome{Stdout: "fine"}, "node pass none: fine"},
		{"exit 1", exit, Outcome{Exit: 1, Stdout: "ERROR:  nhc:  Health check failed:  no /scratch"}, "node fail drain: exit status 1: ERROR:  nhc:  Health check failed:  no /scratch"},
		{"exit 125", exit, Outcome{Exit: 125}, "node fail drain: exit status 125"},
		{"exit 126", exit, Outcome{Exit: 126}, "node unknown none: exit status 126: it could not do its work"},
		{"exit 142, NHC's own timeout", exit, Outcome{Exit: 142, Stdout: "timed out"}, "node unknown none: exit status 142: it could not do its work: timed out"},
		{"findings", asJSON, Outcome{Stdout: `{"verdict":"pass","reason":"ok"}` + "\n\n" +
			`{"verdict":"fail","action":"fix_config","code":7,"reason":"mode","subject":{"kind":"gpu","gpu_index":2,"node":"other"}}` + "\n" +
			`{"verdict":"fail","reason":"no action","subject":{"kind":"port","port":"mlx5_0/1"}}` + "\n"},
			"node pass none: ok\ngpu 2 fail fix_config code=7: mode\nport/portmlx5_0/1 fail drain: no action"},
		{"a fault that asks for nothing", asJSON, Outcome{Stdout: `{"verdict":"fail","action":"watch","reason":"hm"}`}, "node not_applicable watch: hm"},
		{"what a script may not say", asJSON, Outcome{Stdout: `{"check":"xid","hard":true,"verdict":"fail","secondary":true,"at":"2020-01-01T00:00:00Z"}`}, "node fail drain: it gives no reason"},
		{"no finding", asJSON, Outcome{Stderr: "oops"}, "node unknown none: prints no finding: oops"},
		{"no JSON", asJSON, Outcome{Stdout: "hello\n{\"verdict\":\"pass\",\"reason\":\"r\"}"}, "node unknown none: line 1 is no finding: invalid character 'h' looking for beginning of value\nnode pass none: r"},
		{"no verdict", asJSON, Outcome{Stdout: "{}"}, "node unknown none: line 1 is no finding: it has no verdict"},
		{"a verdict that does not exist", asJSON, Outcome{Stdout: `{"verdict":"ok"}`}, `node unknown none: line 1 is no finding: verdict "ok": want one of unknown, pass, fail, not_applicable`},
		{"a subject that does not exist", asJSON, Outcome{Stdout: `{"verdict":"pass","subject":{"kind":"disk"}}`}, `node unknown none: line 1 is no finding: subject kind "disk": want one of node, gpu, mig, link, port, sm, switch`},
		{"two objects in a line", asJSON, Outcome{Stdout: `{"verdict":"pass"}{"verdict":"pass"}`}, "node unknown none: line 1 is no finding: more follows the object"},
		{"findings, and a status", asJSON, Outcome{Exit: 1, Stdout: `{"verdict":"pass","reason":"r"}`, Stderr: "trace"}, "node pass none: r\nnode unknown none: ended with exit status 1: trace"},
		{"characters that are none", nagios, Outcome{Exit: 2, Stdout: "a\x1b[31mb\xffc"}, "node fail drain: a�[31mb�c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range Judge("gpu001", "scratch", tt.u, tt.o) {
				if f.Check != "user/scratch" || f.Subject.Node != "gpu001" || f.Hard || f.Secondary || !f.At.IsZero() {
					t.Errorf("%+v", f)
				}
				got = append(got, line(f))
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got\n%s\nwant\n%s", text, tt.want)
			}
		})
	}
}

func TestFindingsAreBounded(t *testing.T) {
	fs := Judge("n", "x", policy.UserCheck{Format: "json"}, Outcome{Stdout: strings.Repeat(`{"verdict":"pass","reason":"`+strings.Repeat("y", 400)+`"}`+"\n", maxFindings+1)})
	if len(fs) != maxFindings+1 || fs[maxFindings].Reason != "prints more than 64 findings" || fs[maxFindings].Verdict != checks.Unknown {
		t.Errorf("%d findings, the last %+v", len(fs), fs[len(fs)-1])
	}
	if n := len([]rune(fs[0].Reason)); n != maxReason+1 {
		t.Errorf("a reason of %d characters", n)
	}
	if fs := Judge("n", "x", policy.UserCheck{Format: "json"}, Outcome{Stdout: strings.Repeat(`{"verdict":"pass"}`+"\n", maxFindings)}); checks.FoldFindings(fs) != checks.Pass {
		t.Error("as many as may be are too many")
	}
}

// Whatever it prints, what is made of it is sound; without its words it is judged alike; a line more changes nothing of those
// before it.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"verdict":"pass","reason":"ok"}`, "{", `{"verdict":"fail","action":"none"}`, "\x00\n{}", `{"verdict":"fail","subject":{"kind":"gpu","gpu_index":-1}}`} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, out string, exit int) {
		for _, format := range []string{"json", "nagios", "exit"} {
			u := policy.UserCheck{Format: format}
			fs := Judge("n", "x", u, Outcome{Stdout: out, Exit: exit})
			if len(fs) == 0 {
				t.Fatal("nothing is said of it")
			}
			for _, f := range fs {
				if f.Check != "user/x" || f.Hard || f.Reason == "" || strings.ContainsAny(f.Reason, "\n\x00") || f.Verdict == checks.Fail && f.Action.Harmless() || f.Subject.Node != "n" {
					t.Fatalf("%+v", f)
				}
				if _, err := json.Marshal(f); err != nil {
					t.Fatal(err)
				}
			}
			hidden := Redact(u, Outcome{Stdout: out, Exit: exit})
			if a, b := bones(u, Outcome{Stdout: out, Exit: exit}), bones(u, hidden); a != b {
				t.Fatalf("redacted, it is judged\n%s\nwant\n%s", b, a)
			}
			if again := Redact(u, hidden); again != hidden {
				t.Fatalf("redacted twice %+v, once %+v", again, hidden)
			}
			if format != "json" || len(fs) > maxFindings || exit != 0 || strings.TrimSpace(out) == "" {
				continue
			}
			more := Judge("n", "x", u, Outcome{Stdout: out + "\n" + `{"verdict":"pass","reason":"last"}`})
			for i := range min(len(fs), maxFindings) {
				if a, b := line(fs[i]), line(more[i]); a != b {
					t.Fatalf("finding %d was %s and is %s with a line more", i, a, b)
				}
			}
		}
	})
}

// The check's id is that of the family: one check alone is user/NAME.
func TestThreeFixtures(t *testing.T) {
	of := func(o Outcome) []checks.Finding {
		fs := Judge("gpu001", "x", policy.UserCheck{}, o)
		for i := range fs {
			fs[i].Check = strings.TrimSuffix(fs[i].Check, "/x")
		}
		return fs
	}
	checktest.Three(t, ID, of(Outcome{Stdout: "OK"}), of(Outcome{Exit: 2, Stdout: "full"}), of(Outcome{TimedOut: true}))
}
