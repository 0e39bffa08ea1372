package api_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func scrape(m *api.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetricsNames(t *testing.T) {
	snap := api.Snapshot{
		Nodes: map[string]int{"certified": 7, "quarantined": 1}, Lost: 2, HeldBack: 3, Certificates: 6, CasesOpen: 4, Leader: true, Term: 9, Frozen: true,
		Budgets: []wire.Budget{{Scope: "fleet hour", Spent: 1, Limit: 2}, {Scope: "fleet hour", Spent: 5, Limit: 5}},
		Storms:  1, EffectsPending: map[string]int{"drain": 2}, SlurmRead: time.UnixMilli(1764446400500),
	}
	m := api.NewMetrics("v1", func() api.Snapshot { return snap })
	m.Page("storm")
	m.GuardRefused("drain")
	m.EffectEnded("drain", "done", 1200*time.Millisecond)
	m.Permit(true)
	m.Permit(false)
	m.Permit(false)
	m.Applied(3 * time.Millisecond)
	text := scrape(m)
	for _, want := range []string{
		`assay_nodes{state="certified"} 7`, `assay_nodes{state="quarantined"} 1`, `assay_nodes{state="rma"} 0`, `assay_nodes_lost 2`, `assay_nodes_held_back 3`,
		`assay_certificates_valid 6`, `assay_cases_open 4`, `assay_leader 1`, `assay_term 9`, `assay_pages_total{reason="storm"} 1`, `assay_guard_frozen 1`,
		`assay_guard_spent{scope="fleet hour"} 1`, `assay_guard_limit{scope="fleet hour"} 2`, `assay_guard_refused_total{step="drain"} 1`, `assay_storms_active 1`,
		`assay_effects_pending{kind="drain"} 2`, `assay_effects_pending{kind="resume"} 0`, `assay_effect_duration_seconds_count{kind="drain"} 1`,
		`assay_effects_total{kind="drain",outcome="done"} 1`, `assay_permits_total{outcome="granted"} 1`, `assay_permits_total{outcome="refused"} 2`,
		`assay_apply_duration_seconds_count 1`, `assay_slurm_read_timestamp_seconds 1.7644464005e+09`, `assay_agents_connected 0`, `assay_build_info{version="v1"} 1`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no sample %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	for _, s := range []lifecycle.State{lifecycle.Enrolled, lifecycle.Screening, lifecycle.Suspect, lifecycle.Withheld, lifecycle.Draining, lifecycle.Remediating, lifecycle.Retired} {
		if !strings.Contains(text, `assay_nodes{state="`+string(s)+`"} 0`) {
			t.Errorf("state %s is not shown", s)
		}
	}
	// A gauge never sticks: what left the snapshot is gone, or 0, at the next scrape.
	snap = api.Snapshot{}
	text = scrape(m)
	for _, gone := range []string{"assay_slurm_read_timestamp_seconds ", `scope="fleet hour"`} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still there", gone)
		}
	}
	if !strings.Contains(text, `assay_nodes{state="certified"} 0`) {
		t.Error("the count of certified nodes sticks")
	}
}

// panicky is a backend with a fault of its own.
type panicky struct{ api.Agents }

func (panicky) Report(context.Context, checks.Report) (wire.ReportAnswer, error) { panic("a fault") }

func TestPanicIsAProblem(t *testing.T) {
	h := newHandler(t, func(b *api.Backend) { b.Agents = panicky{b.Agents} })
	status, body, head := h.as("node", "gpu001", "POST", wire.PathReports, `{"node":"gpu001","id":"r"}`)
	p := wantProblem(t, "panic", 500, status, body, head)
	if strings.Contains(p.Detail, "a fault") && !strings.Contains(p.Detail, "of its own") {
		t.Errorf("the panic's text went out: %q", p.Detail)
	}
	if !strings.Contains(h.log.String(), "request handler panicked") {
		t.Error("the panic is not in the log")
	}
}

func TestKeepalive(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "enrolled"})
	r.server.SetKeepalive(20 * time.Millisecond)
	for _, path := range []string{wire.PathStream, wire.PathEvents + "?last=0&follow=true"} {
		c := r.as(t, "operator", "alice")
		if path == wire.PathStream {
			c = r.as(t, "node", "gpu001")
		}
		sc := stream(t, c, r.url+path)
		blank := 0
		for blank < 3 && sc.Scan() {
			if len(sc.Bytes()) == 0 {
				blank++
			}
		}
		if blank < 3 {
			t.Errorf("%s: %d empty lines, then %v", path, blank, sc.Err())
		}
	}
}
