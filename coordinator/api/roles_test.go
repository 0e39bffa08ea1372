package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Only enrolment is for anyone, and nothing but reading is for viewers.
func TestEveryEndpointSaysWhomItIsFor(t *testing.T) {
	if len(api.Routes()) < 40 {
		t.Fatalf("only %d routes", len(api.Routes()))
	}
	for _, rt := range api.Routes() {
		if rt.Caller == authority.Nobody && rt.Pattern != "POST "+wire.PathEnroll {
			t.Errorf("%s is for anyone", rt.Pattern)
		}
		reads := strings.HasPrefix(rt.Pattern, "GET ") || rt.Pattern == "POST "+wire.PathJobs+"/plan"
		if rt.Caller == authority.Operator && reads != (rt.Role == authority.RoleViewer) {
			t.Errorf("%s is for %ss", rt.Pattern, rt.Role)
		}
	}
}

var wildcards = strings.NewReplacer("{node}", "gpu001", "{id}", "17", "{kind}", "qos", "{name}", "normal", "{sum}", strings.Repeat("0", 64))

// Each role is refused exactly what is above it, with the same words: who, what role, what was needed.
func TestRoleByEndpoint(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	people := map[authority.Role]*http.Client{}
	for _, role := range authority.Roles {
		people[role] = r.person(t, "the-"+string(role), role)
	}
	tried := 0
	for _, rt := range api.Routes() {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if rt.Caller != authority.Operator || path == wire.PathEvents {
			continue
		}
		for _, verb := range append([]string{"any"}, rt.Admins...) {
			need := rt.Role
			if verb != "any" {
				need = authority.RoleAdmin
			}
			at := wildcards.Replace(strings.Replace(path, "{verb}", verb, 1))
			for role, c := range people {
				status, body, h := do(t, c, method, r.url+at, "not json")
				if role.Covers(need) {
					if status == http.StatusForbidden || status == http.StatusUnauthorized {
						t.Errorf("%s %s by a %s: %d %s", method, at, role, status, body)
					}
					continue
				}
				if strings.Contains(string(body), "no such endpoint") {
					continue // the plane of the tests lacks what is behind it
				}
				tried++
				p := wantProblem(t, at, http.StatusForbidden, status, body, h)
				if want := "the-" + string(role) + " has the role " + string(role) + "; " + method + " " + at + " needs " + string(need); p.Detail != want || p.Hint == "" {
					t.Errorf("%s %s by a %s: %+v, want %q and a hint", method, at, role, p, want)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d calls were to be refused", tried)
	}
}

// Refusals are kept for the audit, but nobody fills history with them.
func TestRefusalsAreRecorded(t *testing.T) {
	r := newRig(t)
	carol := r.person(t, "carol", authority.RoleViewer)
	for range 40 {
		status, body, h := do(t, carol, "POST", r.url+wire.PathNodes+"/gpu001/drain", wire.NodeVerb{Reason: "x"})
		wantProblem(t, "drain by a viewer", http.StatusForbidden, status, body, h)
	}
	var kept []wire.HistoryEntry
	entries, err := r.plane.Entries(t.Context(), "", 1000, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.By == "carol" {
			kept = append(kept, e)
		}
	}
	if len(kept) < 1 || len(kept) > 6 {
		t.Fatalf("%d of 40 refusals recorded", len(kept))
	}
	if e := kept[0]; e.Node != "gpu001" || e.Event != `refused role=viewer needs=operator call="POST /v1/nodes/gpu001/drain"` {
		t.Errorf("recorded %+v", e)
	}
}
