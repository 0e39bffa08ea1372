package rma

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestTicketMovesForwardOnly(t *testing.T) {
	k := Ticket{ID: "R-1"}.Move(Opened, "alice", "", noon)
	steps := []struct {
		state string
		ok    bool
	}{{Shipped, true}, {Accepted, false}, {Replaced, false}, {Verified, false}, {Closed, false}, {Received, true}, {Received, false}}
	for _, s := range steps {
		next, err := k.Advance(s.state, "alice", "note", noon.Add(time.Hour))
		if (err == nil) != s.ok {
			t.Errorf("%s -> %s: %v", k.State, s.state, err)
		}
		if err == nil {
			k = next
		}
	}
	if k.Overdue(noon.Add(20*24*time.Hour)) || !k.Overdue(noon.Add(22*24*time.Hour)) {
		t.Errorf("received: reminded at %s", k.Remind)
	}
	if k = k.Reminded(noon.Add(22 * 24 * time.Hour)); k.Overdue(noon.Add(23 * 24 * time.Hour)) {
		t.Error("reminded again the next day")
	}
	k = k.Move(Returned, "alice", "no fault found", noon)
	if _, err := k.Advance(Shipped, "alice", "", noon); err == nil {
		t.Error("shipped after it came back")
	}
	k = k.Close("assay", "no fault found", noon)
	if _, err := k.Advance(Shipped, "alice", "", noon); err == nil || !k.Done() || !k.Remind.IsZero() {
		t.Errorf("closed: %+v, %v", k, err)
	}
}

func TestAttribution(t *testing.T) {
	fault := func(id, node, slot, cause string) Fault {
		return Fault{At: noon, Case: id, Cause: cause, Node: node, Slot: slot}
	}
	for _, tt := range []struct {
		name  string
		parts map[string]Part
		want  string
	}{
		{"one fault says nothing", map[string]Part{"A": {Faults: []Fault{fault("1", "n1", "3b", "xid 79")}}}, ""},
		{"the same board in two slots", map[string]Part{"A": {Faults: []Fault{fault("1", "n1", "3b", "xid 79"), fault("2", "n2", "1a", "xid 79")}}}, "board"},
		{"two boards in one slot", map[string]Part{"A": {Faults: []Fault{fault("1", "n1", "3b", "xid 79")}}, "B": {Faults: []Fault{fault("2", "n1", "3b", "xid 79")}}}, "slot"},
		{"another cause is another matter", map[string]Part{"A": {Faults: []Fault{fault("1", "n1", "3b", "xid 79")}}, "B": {Faults: []Fault{fault("2", "n1", "3b", "ecc")}}}, ""},
		{"both are true: nobody can tell", map[string]Part{"A": {Faults: []Fault{fault("1", "n1", "3b", "xid 79"), fault("3", "n2", "1a", "xid 79")}}, "B": {Faults: []Fault{fault("2", "n1", "3b", "xid 79")}}}, ""},
	} {
		got := Attribute("A", "n1", "3b", "xid 79", tt.parts)
		if kind, _, _ := strings.Cut(got, ":"); kind != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPartsMove(t *testing.T) {
	p, news := Part{Serial: "A"}.Fit("n1", "3b", noon)
	if _, again := p.Fit("n1", "3b", noon.Add(time.Hour)); !news || again {
		t.Error("the same place is news")
	}
	p, _ = p.Fit("n2", "1a", noon.Add(time.Hour))
	if len(p.Places) != 2 || p.Places[0].Until.IsZero() || !p.Places[1].Until.IsZero() {
		t.Errorf("%+v", p.Places)
	}
	p = p.Failed(Fault{Case: "Q-1", Cause: "ecc"}).Failed(Fault{Case: "Q-1", Outcome: "clean quick screen"})
	if len(p.Faults) != 1 || p.Faults[0].Outcome == "" || p.Faults[0].Cause != "ecc" {
		t.Errorf("%+v", p.Faults)
	}
}

func TestLemons(t *testing.T) {
	lemons := policy.Default().Lemons
	var all []Signals
	for i := range 1000 {
		all = append(all, Signals{Node: fmt.Sprintf("n%04d", i), XIDs: i % 3, Outs: i % 2})
	}
	if got := Lemons(all, lemons); len(got) != 0 {
		t.Errorf("a quiet fleet has lemons: %+v", got[0])
	}
	all[7].XIDs, all[7].Outs, all[7].Multi = 40, 9, 3
	all[8].Tickets = 1
	got := Lemons(all, lemons)
	if len(got) != 2 || got[0].Node != "n0007" || got[0].Score != 3 || got[1].Node != "n0008" || got[1].Score != 1 {
		t.Fatalf("%+v", got)
	}
	if !strings.Contains(strings.Join(got[0].Reasons, "; "), "9 times out of service (bound 1)") {
		t.Errorf("reasons %q", got[0].Reasons)
	}
	if got := Lemons(all[:8], lemons); len(got) != 1 || got[0].Node != "n0007" {
		t.Errorf("a small fleet: %+v", got)
	}
	strict := lemons
	strict.Outs, strict.XIDs, strict.MultiFails, strict.Tickets = 9, 39, 3, 1
	if got := Lemons(all, strict); len(got) != 1 || got[0].Score != 1 || got[0].Reasons[0] != "40 XIDs (bound 39)" {
		t.Errorf("floors just at what was seen, and one below it: %+v", got)
	}
	few := lemons
	few.SmallFleet = 8
	if got := Lemons(all[:8], few); len(got) != 1 || got[0].Reasons[0] != "40 XIDs (bound 2)" {
		t.Errorf("a percentile of eight nodes: %+v", got)
	}
	lax := lemons
	lax.Percentile = 1
	if got := Lemons(all, lax); len(got) != 0 {
		t.Errorf("none is above the worst: %+v", got)
	}
	if Attributed(noon, noon.Add(-11*time.Minute)) || !Attributed(noon, noon.Add(5*time.Minute)) || Attributed(noon, noon.Add(6*time.Minute)) {
		t.Error("the window of attribution")
	}
}
