package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// held gives the version of the policy that each node's agent is to hold, and its row limit.
func (s *site) held(names []string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, n := range names {
		s.try("desired", func(ctx context.Context) error {
			d, err := s.coord.Desired(ctx, n, 0)
			out[n] = fmt.Sprintf("%d/%d", d.Policy.Version, d.Policy.RowRemap.MaxCorrectable)
			return err
		})
	}
	return out
}

// A policy holds on a share of the nodes, over a change of leaders, until it is promoted; one that is withdrawn is gone, and
// its version is not used again.
func TestARolloutHoldsOnAShareUntilItIsPromoted(t *testing.T) {
	var names []string
	for i := range 24 {
		names = append(names, fmt.Sprintf("gpu%03d", i))
	}
	s := startSite(t, newPlant(names...), "/rollout/", nil)
	for _, n := range names {
		s.enrol(n, true)
	}
	next := acting()
	next.RowRemap.MaxCorrectable = 4
	next.Guard.StormNodes = 7
	bad := next
	bad.RowRemap.MaxCorrectable, bad.Mode = -1, "perhaps"
	if _, err := s.coord.RollOut(t.Context(), "ann", wire.RolloutAsk{Policy: bad, Share: 0.25}); err == nil || !strings.Contains(err.Error(), "mode: ") || !strings.Contains(err.Error(), "row_remap.max_correctable: ") {
		t.Fatalf("a bad policy: %v, want every fault", err)
	}
	for _, share := range []policy.Share{0, 1, -1} {
		if _, err := s.coord.RollOut(t.Context(), "ann", wire.RolloutAsk{Policy: next, Share: share}); err == nil {
			t.Errorf("rolled out to a share of %v", share)
		}
	}
	r, err := s.coord.RollOut(t.Context(), "ann", wire.RolloutAsk{Policy: next, Share: 0.25, Reason: "fewer rows"})
	if err != nil || len(r.Nodes) != 6 || r.Policy.Version != 2 || len(r.Taken) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	check := func(s *site, canary, rest string) {
		t.Helper()
		for n, got := range s.held(names) {
			want := rest
			if slices.Contains(r.Nodes, n) {
				want = canary
			}
			if got != want {
				t.Errorf("%s holds policy/rows %s, want %s", n, got, want)
			}
		}
	}
	check(s, "2/4", "1/10")
	if p, err := s.coord.Policy(t.Context()); err != nil || p.Version != 1 || p.Guard.StormNodes != 1000 {
		t.Errorf("in force is %d with %d storm nodes, %v", p.Version, p.Guard.StormNodes, err)
	}
	s.try("heartbeat", func(ctx context.Context) error {
		return s.coord.Heartbeat(ctx, wire.Heartbeat{Node: r.Nodes[0], PolicyVersion: 2})
	})
	if r, err := s.coord.Rollout(t.Context()); err != nil || !slices.Equal(r.Taken, r.Nodes[:1]) || r.By != "ann" || r.Reason != "fewer rows" {
		t.Errorf("%+v, %v", r, err)
	}
	s.stop()

	s = startSite(t, s.plant, "/rollout/", nil)
	check(s, "2/4", "1/10")
	if _, err := s.coord.Promote(t.Context(), "bob", wire.RolloutVerb{Version: 3}); err == nil {
		t.Error("another version than the one on its way was promoted")
	}
	if p, err := s.coord.Withdraw(t.Context(), "bob", wire.RolloutVerb{Version: 2}); err != nil || p.Version != 1 {
		t.Errorf("withdrawn: %d, %v", p.Version, err)
	}
	check(s, "1/10", "1/10")
	r, err = s.coord.RollOut(t.Context(), "ann", wire.RolloutAsk{Policy: next, Share: 0.5, After: policy.Duration(time.Hour)})
	if err != nil || r.Policy.Version != 3 || r.Promote.Sub(r.Since) != time.Hour {
		t.Fatalf("%+v, %v", r, err)
	}
	check(s, "3/4", "1/10")
	if p, err := s.coord.Promote(t.Context(), "bob", wire.RolloutVerb{Version: 3}); err != nil || p.Version != 3 || p.Guard.StormNodes != 7 {
		t.Errorf("promoted: %d, %v", p.Version, err)
	}
	check(s, "3/4", "3/4")
	if _, err := s.coord.Withdraw(t.Context(), "bob", wire.RolloutVerb{Version: 3}); err == nil {
		t.Error("what is in force was withdrawn")
	}
	// A policy applied to all ends a rollout.
	if _, err := s.coord.RollOut(t.Context(), "ann", wire.RolloutAsk{Policy: acting(), Share: 0.5}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.coord.SetPolicy(t.Context(), "ann", next); err != nil || p.Version != 5 {
		t.Errorf("applied to all: %d, %v", p.Version, err)
	}
	check(s, "5/4", "5/4")
	if r, err := s.coord.Rollout(t.Context()); err != nil || r.Policy != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARolloutIsPromotedWhenItsTimeHasCome(t *testing.T) {
	s := newState()
	next := policy.Default()
	next.Version = 2
	s.rollout = &rollout{Policy: next, Share: 0.5, Since: noon, Promote: noon.Add(time.Hour)}
	l := &lead{st: s}
	if work := l.promotion(noon.Add(time.Hour - 1)); len(work) != 0 {
		t.Error("promoted early")
	}
	work := l.promotion(noon.Add(time.Hour))
	if len(work) != 1 {
		t.Fatal("not promoted")
	}
	tx := s.begin(env{}, noon.Add(time.Hour))
	if err := work[0](tx); err != nil || tx.policy.Version != 2 || tx.rollout != nil || len(tx.history) != 1 {
		t.Errorf("%d, %v, %+v, %v", tx.policy.Version, tx.rollout, tx.history, err)
	}
	if len(tx.ops()) != tx.size() {
		t.Errorf("size %d of %d operations", tx.size(), len(tx.ops()))
	}
	// Withdrawn meanwhile: nothing is due any more.
	tx = s.begin(env{}, noon.Add(time.Hour))
	tx.rollout = nil
	if err := work[0](tx); err != nil || tx.policy.Version == 2 {
		t.Errorf("promoted after it was withdrawn: %v", err)
	}
}

// A rollout whose time has come waits for the first of its nodes to take it.
func TestARolloutThatNoNodeHasTakenIsNotPromoted(t *testing.T) {
	s := newState()
	s.setNode(lifecycle.Node{Name: "n1"})
	s.setNode(lifecycle.Node{Name: "gone", State: lifecycle.Retired})
	next := policy.Default()
	next.Version = 2
	s.rollout = &rollout{Policy: next, Share: 0.5, Since: noon, Promote: noon.Add(time.Hour)}
	s.rollout.draw(s.managed())
	l := &lead{st: s}
	for _, tt := range []struct {
		node    string
		version int
		want    int
	}{{"", 0, 0}, {"n1", 1, 0}, {"gone", 2, 0}, {"n1", 2, 1}} {
		if tt.node != "" {
			l.beats.put(wire.Heartbeat{Node: tt.node, PolicyVersion: tt.version})
		}
		if work := l.promotion(noon.Add(2 * time.Hour)); len(work) != tt.want {
			t.Errorf("after %q says that it holds %d: %d promotions, want %d", tt.node, tt.version, len(work), tt.want)
		}
	}
}

// The share is of the nodes there are, rounded up: 5 % of eight are one node, never none, and a rollout to no node is none.
func TestDraw(t *testing.T) {
	nodes := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("gpu%03d", i))
		}
		return out
	}
	for _, tt := range []struct {
		nodes int
		share policy.Share
		want  int
	}{{1, 0.01, 1}, {1, 0.99, 1}, {8, 0.05, 1}, {8, 0.25, 2}, {8, 0.26, 3}, {8, 0.99, 8}, {100, 0.07, 7}, {100, 0.071, 8}} {
		for version := range 50 {
			r := &rollout{Policy: policy.Policy{Version: version}, Share: tt.share}
			r.draw(nodes(tt.nodes))
			var got int
			for _, n := range nodes(tt.nodes) {
				if r.holds(n) {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("version %d: %v of %d nodes are %d, want %d", version, float64(tt.share), tt.nodes, got, tt.want)
			}
		}
	}
	// With no node enrolled yet, those to come go by the share itself.
	r, got := &rollout{Share: 0.25}, 0
	r.draw(nil)
	for _, n := range nodes(1000) {
		if r.holds(n) {
			got++
		}
	}
	if got < 200 || got > 300 {
		t.Errorf("a quarter of 1000 nodes to come are %d", got)
	}
}

func TestOverridesThatMakeNoSenseTogetherAreRefused(t *testing.T) {
	p := policy.Default()
	for i, text := range []string{`{"hooks":{"budget":"15s"}}`, `{"hooks":{"permit_wait":"5s"}}`} {
		o := policy.Override{Name: fmt.Sprint(i), SKU: []string{"H100"}, Nodes: []string{fmt.Sprintf("n[1,%d]", i+2)}}
		if err := json.Unmarshal([]byte(text), &o.Set); err != nil {
			t.Fatal(err)
		}
		p.Overrides = append(p.Overrides, o)
	}
	if fs := policy.Validate(p); len(fs) > 0 {
		t.Fatalf("each is sound: %v", fs)
	}
	s := newState()
	h100 := checks.Inventory{GPUs: []checks.GPU{{Name: "NVIDIA H100"}}}
	for _, n := range []lifecycle.Node{{Name: "n2", Inventory: h100}, {Name: "n3", Inventory: h100}} {
		s.setNode(n)
	}
	if err := s.begin(env{}, noon).together(p); err != nil {
		t.Errorf("no node has both: %v", err)
	}
	s.setNode(lifecycle.Node{Name: "n1", Inventory: h100})
	if err := s.begin(env{}, noon).together(p); err == nil || !strings.Contains(err.Error(), "on n1: hooks.permit_wait") {
		t.Errorf("n1 has both: %v", err)
	}
}

func TestRelearned(t *testing.T) {
	set := func(links string) policy.Set {
		var s policy.Set
		if err := json.Unmarshal([]byte(links), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const eighteen, twelve = `{"nvlink":{"links":18}}`, `{"nvlink":{"links":12}}`
	learned := func(sku string, nodes int, links string) policy.Learned {
		return policy.Learned{SKU: sku, Nodes: nodes, Values: []policy.LearnedValue{{Path: "nvlink.links", Value: links, Holds: links != ""}}}
	}
	nothing := policy.Learned{SKU: "H100", Nodes: 10}
	before := map[string]policy.Set{"H100": set(eighteen)}
	for _, tt := range []struct {
		name string
		now  []policy.Learned
		of   map[string]int
		want map[string]policy.Set
	}{
		{"a new leader has heard nobody", nil, map[string]int{"H100": 10}, before},
		{"it has heard half", []policy.Learned{learned("H100", 5, "12")}, map[string]int{"H100": 10}, before},
		{"it has heard most", []policy.Learned{learned("H100", 6, "12")}, map[string]int{"H100": 10}, map[string]policy.Set{"H100": set(twelve)}},
		{"most agree no more", []policy.Learned{nothing}, map[string]int{"H100": 10}, nil},
		{"the product's nodes are gone", nil, map[string]int{"A100": 3}, nil},
		{"another product", []policy.Learned{learned("A100", 3, "12")}, map[string]int{"H100": 10, "A100": 3}, map[string]policy.Set{"H100": set(eighteen), "A100": set(twelve)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := relearned(before, tt.now, tt.of); !maps.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// What most nodes show reaches the agents of that product, and a new leader still knows it.
func TestWhatIsLearnedReachesTheAgents(t *testing.T) {
	names := []string{"a1", "a2", "a3", "a4", "a5"}
	s := startSite(t, newPlant(names...), "/learned/", nil)
	for _, n := range names {
		s.enrol(n, true)
		s.report(checks.Report{ID: "first " + n, Node: n, Why: checks.WhyBackground})
		inv := s.inventory(n)
		inv.Shows = map[string]int64{"inventory.count": 8}
		s.try("report", func(ctx context.Context) error {
			_, err := s.coord.Report(ctx, checks.Report{ID: "shows " + n, Node: n, BootID: inv.BootID, Why: checks.WhyBackground, Inventory: inv})
			return err
		})
	}
	const want = `{"inventory":{"count":8}}`
	learned := func(s *site) string {
		var d wire.Desired
		s.try("desired", func(ctx context.Context) (err error) { d, err = s.coord.Desired(ctx, "a1", 0); return err })
		return d.Learned.JSON()
	}
	l, err := s.coord.leading()
	if err != nil {
		t.Fatal(err)
	}
	s.try("learn", l.learnNow)
	if got := learned(s); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if ls, err := s.coord.Learned(t.Context()); err != nil || len(ls) != 1 || ls[0].Nodes != 5 || len(ls[0].Values) != 2 {
		t.Errorf("%+v, %v", ls, err)
	}
	s.stop()
	s = startSite(t, s.plant, "/learned/", nil)
	if got := learned(s); got != want {
		t.Errorf("a new leader sends %s, want %s", got, want)
	}
}
