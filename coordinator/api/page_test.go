package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Pages hold each node once, in order, while nodes come and go between them.
func TestPages(t *testing.T) {
	r := newRig(t)
	alice := r.person(t, "alice", authority.RoleViewer)
	for i := range 10 {
		r.plane.Add(wire.Node{Name: fmt.Sprintf("gpu%03d", i), State: "certified"})
	}
	var names []string
	next, sizes := "", []int{}
	for {
		status, body, h := do(t, alice, "GET", r.url+wire.PathNodes+"?limit=4&continue="+next, nil)
		var ns []wire.Node
		if status != http.StatusOK || json.Unmarshal(body, &ns) != nil {
			t.Fatalf("%d %s", status, body)
		}
		for _, n := range ns {
			names = append(names, n.Name)
		}
		sizes = append(sizes, len(ns))
		next = h.Get(wire.ContinueHeader)
		if (next == "") != (h.Get("Link") == "") {
			t.Errorf("continue %q, link %q", next, h.Get("Link"))
		}
		if next == "" {
			break
		}
		if !strings.Contains(h.Get("Link"), "continue="+next) || !strings.Contains(h.Get("Link"), `rel="next"`) {
			t.Errorf("link %q", h.Get("Link"))
		}
		r.plane.Add(wire.Node{Name: "gpu000a", State: "certified"}, wire.Node{Name: "gpu008a", State: "certified"}) // before and after where we are
	}
	if want := "gpu000 gpu001 gpu002 gpu003 gpu004 gpu005 gpu006 gpu007 gpu008 gpu008a gpu009"; strings.Join(names, " ") != want {
		t.Errorf("got  %v\nwant %s", names, want)
	}
	if !slices.Equal(sizes, []int{4, 4, 3}) {
		t.Errorf("pages of %v", sizes)
	}
}

func TestPageRefused(t *testing.T) {
	r := newRig(t)
	alice := r.person(t, "alice", authority.RoleViewer)
	for query, says := range map[string]string{
		"limit=0":                 "want a number from 1 to 10000",
		"limit=10001":             "want a number from 1 to 10000",
		"limit=x":                 "want a number from 1 to 10000",
		"limit=3&continue=%2F%2F": "is none that was answered",
		"continue=Z3B1":           "continue goes with limit",
	} {
		status, body, h := do(t, alice, "GET", r.url+wire.PathCases+"?"+query, nil)
		if p := wantProblem(t, query, http.StatusBadRequest, status, body, h); !strings.Contains(p.Detail, says) {
			t.Errorf("%s: %q, want %q", query, p.Detail, says)
		}
	}
}

// Whatever list is asked for in pages, an empty one is a list.
func TestEveryListHasPages(t *testing.T) {
	r := newRig(t)
	alice := r.person(t, "alice", authority.RoleViewer)
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	for _, path := range []string{wire.PathNodes, wire.PathNodes + "/gpu001/history", wire.PathCases, wire.PathCerts, wire.PathLearned, wire.PathJobs, wire.PathAccounts} {
		status, body, _ := do(t, alice, "GET", r.url+path+"?limit=5", nil)
		if status != http.StatusOK || body[0] != '[' {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body, _ := do(t, alice, "GET", r.url+path+"?limit=none", nil); status != http.StatusBadRequest {
			t.Errorf("%s?limit=none: %d %s", path, status, body)
		}
	}
}
