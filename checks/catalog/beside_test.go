package catalog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/bandwidth"
	"github.com/assay-gpu/assay/checks/dcgm"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/checks/user"
)

// What is read beside the snapshot counts by level and policy, and bears the time of its reading.
func TestJudgeBeside(t *testing.T) {
	at := func(m int) time.Time { return time.Unix(int64(60*m), 0).UTC() }
	gpu := checks.GPU{UUID: "GPU-a"}
	exit := 0
	silent := dcgm.Health{Have: checks.Read, GPUs: []dcgm.HealthGPU{{UUID: "GPU-a"}}}
	isolate := silent
	isolate.Incidents = []dcgm.Incident{{System: 0x10, Result: 20, Code: 52, Group: dcgm.OfGPU}}
	health := func(h dcgm.Health) Beside { return Beside{Health: &HealthRead{at(1), h}} }
	diag := Beside{Diag: &DiagRead{At: at(2), Level: 2, Output: "{", Exit: &exit}}
	found, err := os.ReadFile("testdata/dcgm-isolate.json")
	if err != nil {
		t.Fatal(err)
	}
	isolating := Beside{Diag: &DiagRead{At: at(2), Level: 2, Output: string(found), Exit: &exit}}
	open, full := user.Outcome{Exit: 3, Stdout: "who knows"}, user.Outcome{Exit: 2, Stdout: "full"}
	script := func(o user.Outcome) Beside { return Beside{User: map[string]UserRead{"x": {at(3), o}}} }
	golden := Beside{Golden: &GoldenRead{At: at(4), GPUs: []checks.GPU{gpu}, Results: map[string]sdc.Reading{"GPU-a": {Have: checks.NotSupported, Err: "no library"}}}}
	for _, tt := range []struct {
		name   string
		read   Beside
		level  checks.Level
		change func(*policy.Policy)
		want   string // check, verdict, minute
	}{
		{"nothing", Beside{}, checks.Standard, nil, ""},
		{"an isolate of the health watches", health(isolate), checks.Quick, nil, "dcgm_health fail 1"},
		{"policy has the health watches asked no more", health(isolate), checks.Quick, func(p *policy.Policy) { p.DCGM.Health = "off" }, ""},
		{"a silence that proves nothing, in the background", health(silent), checks.NoLevel, nil, "dcgm_health unknown 1"},
		{"a silence that proves nothing, in a screen", health(silent), checks.QuickMIG, nil, ""},
		{"DCGM is required and is silent", health(silent), checks.Quick, func(p *policy.Policy) { p.DCGM.Required = true }, ""},
		{"DCGM is required and does not answer", health(dcgm.Health{}), checks.Quick, func(p *policy.Policy) { p.DCGM.Required = true }, "dcgm_health unknown 1"},
		{"DCGM does not answer", health(dcgm.Health{}), checks.Quick, nil, ""},
		{"a diagnostic cut short, in a standard screen", diag, checks.Standard, nil, "dcgm unknown 2"},
		{"a diagnostic that found a fault, and was not run on all", isolating, checks.Standard, nil, "dcgm pass 2, dcgm pass 2, dcgm fail 2, dcgm unknown 2, dcgm unknown 2, dcgm unknown 2"},
		{"a diagnostic, in a deeper screen", diag, checks.Soak, nil, "dcgm unknown 2"},
		{"a diagnostic, in a quick screen", diag, checks.Quick, nil, ""},
		{"a diagnostic, in the background", diag, checks.NoLevel, nil, ""},
		{"policy has no diagnostic run any more", diag, checks.Standard, func(p *policy.Policy) { p.DCGM.Screen = 0 }, ""},
		{"a script's fault", script(full), checks.Quick, nil, "user/x fail 3"},
		{"a script's fault, by policy watched", script(full), checks.Quick, func(p *policy.Policy) { p.Checks = map[string]policy.Check{"user/x": {Action: "watch"}} }, "user/x not_applicable 3"},
		{"a script is open that screens run", script(open), checks.Quick, nil, "user/x unknown 3"},
		{"a script is open that screens do not run", script(open), checks.Quick, func(p *policy.Policy) { p.UserChecks = map[string]policy.UserCheck{"x": {}} }, ""},
		{"the same in the background", script(open), checks.NoLevel, func(p *policy.Policy) { p.UserChecks = map[string]policy.UserCheck{"x": {}} }, "user/x unknown 3"},
		{"a script that policy names no more", script(full), checks.Quick, func(p *policy.Policy) { p.UserChecks = nil }, ""},
		{"a golden run", golden, checks.NoLevel, nil, "sdc not_applicable 4, bandwidth not_applicable 4"},
		{"an open golden run, in a screen", golden, checks.Quick, func(p *policy.Policy) { p.Golden.NoLibrary = "unknown" }, "sdc unknown 4"},
		{"an open golden run, in a standard screen", golden, checks.Standard, func(p *policy.Policy) { p.Golden.NoLibrary = "unknown" }, "sdc unknown 4, bandwidth unknown 4"},
		{"an open golden run, in the background", golden, checks.NoLevel, func(p *policy.Policy) { p.Golden.NoLibrary = "unknown" }, "sdc unknown 4, bandwidth unknown 4"},
		{"policy has no golden kernels run any more", golden, checks.Quick, func(p *policy.Policy) { p.Golden.Screen = false }, ""},
		{"a check that is off", golden.With(script(full)), checks.Quick, func(p *policy.Policy) { p.Checks = map[string]policy.Check{sdc.ID: {Mode: policy.Off}} }, "user/x fail 3, bandwidth not_applicable 4"},
		{"a bandwidth that is off", golden.With(script(full)), checks.Quick, func(p *policy.Policy) { p.Checks = map[string]policy.Check{bandwidth.ID: {Mode: policy.Off}} }, "user/x fail 3, sdc not_applicable 4"},
		{"all of it", health(isolate).With(diag).With(script(full)).With(golden), checks.Standard, nil, "dcgm_health fail 1, dcgm unknown 2, user/x fail 3, sdc not_applicable 4, bandwidth not_applicable 4"},
		{"what is read later counts", script(full).With(script(open)).With(health(silent)).With(health(isolate)), checks.Quick, nil, "dcgm_health fail 1, user/x unknown 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policy.Default()
			p.DCGM.Health, p.DCGM.Screen, p.Golden.Screen = "standalone", 2, true
			p.UserChecks = map[string]policy.UserCheck{"x": {Screen: true}}
			if tt.change != nil {
				tt.change(&p)
			}
			var got []string
			for _, f := range JudgeBeside(tt.read, tt.level, checks.Inventory{Node: "n", BootID: "b"}, p) {
				if f.Subject.Node != "n" || f.BootID != "b" {
					t.Errorf("%+v", f)
				}
				got = append(got, fmt.Sprintf("%s %s %g", f.Check, f.Verdict, f.At.Sub(at(0)).Minutes()))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestBesideIsEmpty(t *testing.T) {
	if b := (Beside{User: map[string]UserRead{}}); !b.Empty() {
		t.Error("no user check ran, and it is not empty")
	}
	for name, b := range map[string]Beside{"health": {Health: &HealthRead{}}, "diag": {Diag: &DiagRead{}}, "user": {User: map[string]UserRead{"x": {}}}, "golden": {Golden: &GoldenRead{}}} {
		if b.Empty() {
			t.Errorf("%s alone is empty", name)
		}
	}
}

// What is kept of a diagnostic gives the report of the run: the output's own, and how it ended.
func TestDiagReport(t *testing.T) {
	text, err := os.ReadFile("testdata/dcgm-isolate.json")
	if err != nil {
		t.Fatal(err)
	}
	exit := 226
	if r := (DiagRead{Output: string(text), Exit: &exit}).Report(); len(r.Tests) == 0 || r.Exit == nil || *r.Exit != 226 || len(r.Runtime) > 0 {
		t.Errorf("%+v", r)
	}
	if r := (DiagRead{Output: string(text), Trouble: "dcgmi ended: killed"}).Report(); len(r.Tests) == 0 || r.Exit != nil || len(r.Runtime) != 1 || r.Runtime[0] != "dcgmi ended: killed" {
		t.Errorf("%+v", r)
	}
	if r := (DiagRead{Output: string(text), Missing: "no dcgmi"}).Report(); r.Missing != "no dcgmi" || len(r.Tests) > 0 {
		t.Errorf("%+v", r)
	}
}
