package coordinator

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

// What an override says of a node holds for the control plane as it does for the agent.
func TestOverridesHoldInTheControlPlane(t *testing.T) {
	p := policy.Default()
	p.Version = 3
	o := policy.Override{Name: "pilot", Nodes: []string{"gpu[001-002]"}, SKU: []string{"H100"}}
	if err := json.Unmarshal([]byte(`{"mode":"act"}`), &o.Set); err != nil {
		t.Fatal(err)
	}
	p.Overrides = []policy.Override{o}
	soft := lifecycle.SoftFault{At: lifecycle.At{Time: noon}, Finding: checks.Finding{Check: "ecc", Verdict: checks.Fail, Action: checks.Drain}}
	h100 := checks.Inventory{GPUs: []checks.GPU{{UUID: "a", Name: "NVIDIA H100 80GB HBM3"}}}
	for _, tt := range []struct {
		name string
		node lifecycle.Node
		want lifecycle.State
	}{
		{"the override's product, as last told", lifecycle.Node{Name: "gpu001", Inventory: h100}, lifecycle.Suspect},
		{"the override's product, as accepted", lifecycle.Node{Name: "gpu002", Expected: h100}, lifecycle.Suspect},
		{"another product", lifecycle.Node{Name: "gpu001", Inventory: checks.Inventory{GPUs: []checks.GPU{{Name: "NVIDIA L40S"}}}}, lifecycle.Certified},
		{"another node", lifecycle.Node{Name: "gpu003", Inventory: h100}, lifecycle.Certified},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newState()
			s.policy = p
			tt.node.State = lifecycle.Certified
			s.setNode(tt.node)
			tx := s.begin(env{newID: func() string { return "Q-0001" }, sign: unsigned}, noon)
			if err := tx.apply(tt.node.Name, soft, "agent"); err != nil {
				t.Fatal(err)
			}
			if n, _ := tx.node(tt.node.Name); n.State != tt.want {
				t.Errorf("%s, want %s", n.State, tt.want)
			}
		})
	}
}

func TestPoliciesAreResolvedOnceForEachKindOfNode(t *testing.T) {
	var ps policies
	p := policy.Default()
	asked := 0
	sku := func() string { asked++; return "NVIDIA H100" }
	ps.of(p, "gpu1", sku)
	if asked != 0 {
		t.Error("the product was asked for, and nothing depends on it")
	}
	for version := range 10 {
		p.Version = version
		p.Checks = map[string]policy.Check{"ecc": {Mode: policy.Act, Share: policy.Share(0.1 * float64(version))}}
		for i := range 200 {
			node := fmt.Sprintf("gpu%03d", i)
			if got, want := ps.of(p, node, sku).ModeOf("ecc"), p.For(node, "NVIDIA H100").ModeOf("ecc"); got != want {
				t.Fatalf("version %d: %s is in %s, want %s", version, node, got, want)
			}
		}
	}
	if len(ps.tables) != policiesKept {
		t.Errorf("%d versions are kept, want %d", len(ps.tables), policiesKept)
	}
	for v, r := range ps.tables {
		if len(r.made) != 2 {
			t.Errorf("version %d was resolved %d times, want 2: in the share and out of it", v, len(r.made))
		}
	}
}
