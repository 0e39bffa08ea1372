package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler"
)

// A user submits jobs and deals with those of its own; those of others, nodes, cases, the guard and policy are not its.
func TestWhatAUserMay(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	carol, dave := r.person(t, "carol", authority.RoleUser), r.person(t, "dave", authority.RoleUser)
	ask := wire.JobAsk{Name: "train", Script: "#!/bin/sh\ntrue\n", Gang: scheduler.Gang{Nodes: 1, GPUs: 8}}
	submit := func(c *http.Client) int64 {
		t.Helper()
		status, body, _ := do(t, c, "POST", r.url+wire.PathJobs, ask)
		var j wire.Job
		if status != http.StatusOK || json.Unmarshal(body, &j) != nil {
			t.Fatalf("submit: %d %s", status, body)
		}
		return j.ID
	}
	hers, his := submit(carol), submit(dave)
	order := func(c *http.Client, id int64, verb string) (int, []byte, http.Header) {
		return do(t, c, "POST", fmt.Sprintf("%s%s/%d/%s", r.url, wire.PathJobs, id, verb), wire.JobVerb{})
	}
	for _, verb := range []string{"cancel", "hold", "release", "requeue"} {
		status, body, h := order(carol, his, verb)
		p := wantProblem(t, verb+" another's job", http.StatusForbidden, status, body, h)
		if !strings.Contains(p.Detail, "carol has the role user") || !strings.Contains(p.Detail, "needs operator") {
			t.Errorf("%s: %+v", verb, p)
		}
	}
	if status, body, _ := order(carol, hers, "cancel"); status != http.StatusOK {
		t.Errorf("cancel her own: %d %s", status, body)
	}
	if status, body, _ := order(r.person(t, "op", authority.RoleOperator), his, "cancel"); status != http.StatusOK {
		t.Errorf("an operator cancels another's: %d %s", status, body)
	}
	first := ask
	first.Nice = -10
	status, body, h := do(t, carol, "POST", r.url+wire.PathJobs, first)
	wantProblem(t, "nice below 0", http.StatusForbidden, status, body, h)
	for _, call := range []struct {
		path string
		body any
	}{
		{wire.PathNodes + "/gpu001/drain", wire.NodeVerb{Reason: "x"}}, {wire.PathGuard + "/freeze", wire.GuardVerb{Reason: "x"}},
		{wire.PathDrill, wire.DrillAsk{}}, {wire.PathOperators, wire.OperatorAsk{Name: "eve", Role: "admin"}}, {wire.PathEnrolment, wire.EnrolAsk{Nodes: []string{"gpu009"}}},
	} {
		status, body, h := do(t, carol, "POST", r.url+call.path, call.body)
		wantProblem(t, call.path, http.StatusForbidden, status, body, h)
	}
	if status, _, _ := do(t, carol, "GET", r.url+wire.PathFleet, nil); status != http.StatusOK {
		t.Errorf("a user reads as a viewer does: %d", status)
	}
}
