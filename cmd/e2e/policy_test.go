package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/replay"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// (p) A stricter limit reaches the nodes that it is meant for, and no others: by an override first, then on a share of the
// fleet, then, promoted, everywhere. What it would have taken is known before.
func TestAPolicyIsTriedOnSomeNodesFirst(t *testing.T) {
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("gpu%d", i+1))
	}
	s := plain(t, options{policy: policyOf{mode: "observe"}}, names...)
	for _, n := range names {
		s.set(n, 1, map[string]string{"remap_correctable": "4", "persists": "true"}) // of 10
	}
	file := func(name string, p policyOf) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cli := func(args ...string) string {
		t.Helper()
		out, err := s.CLI(s.ctx(), args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	out := func(ns map[string]wire.Node) []string {
		var got []string
		for _, n := range names {
			if !healthy(ns[n]) {
				got = append(got, n)
			}
		}
		return got
	}

	// An override for two nodes of this product. All see it; two act on it.
	var all []wire.Node
	if err := json.Unmarshal([]byte(cli("node", "list", "-o", "json")), &all); err != nil {
		t.Fatal(err)
	}
	product := all[0].Product
	if product == "" {
		t.Fatal("the control plane does not know what the nodes are")
	}
	const few = "row_remap:\n  max_correctable: 3\n"
	some := file("some.yaml", policyOf{mode: "observe", more: fmt.Sprintf(`overrides:
  - name: two
    sku: [%q]
    nodes: ["gpu[1-2]"]
    set: {mode: act, row_remap: {max_correctable: 3}}
  - name: another product
    sku: [A10]
    set: {mode: act, row_remap: {max_correctable: 1}}
`, product)})
	cli("policy", "apply", some)
	s.await("the override's two nodes are out", func(ns map[string]wire.Node) bool { return slices.Equal(out(ns), names[:2]) })
	if shown := cli("policy", "show", "--node", "gpu1"); !strings.Contains(shown, "max_correctable: 3") || !strings.Contains(shown, "mode: act") {
		t.Errorf("gpu1 judges by\n%s", shown)
	}
	if shown := cli("policy", "show", "--sku", product); !strings.Contains(shown, "Override two ") || strings.Contains(shown, "Override another") {
		t.Errorf("of the product is known\n%s", shown)
	}

	// What history keeps of it: a limit of 4 would have taken neither.
	var r replay.Report
	lax := file("lax.yaml", policyOf{mode: "act", more: "row_remap:\n  max_correctable: 4\n"})
	if err := json.Unmarshal([]byte(cli("policy", "diff", "--replay", "1h", lax, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Now, names[:2]) || len(r.Would) != 0 || len(r.Cases) != 2 || r.Cases[0].AsThen {
		t.Errorf("replayed: %+v", r)
	}
	strict := file("strict.yaml", policyOf{mode: "act", more: few})
	if err := json.Unmarshal([]byte(cli("policy", "diff", "--replay", "1h", strict, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Would, names[:2]) || len(r.Blind) == 0 {
		t.Errorf("replayed: %+v", r)
	}

	// The strict one on half of the fleet: those, and the two that are out before.
	var roll wire.Rollout
	if err := json.Unmarshal([]byte(cli("policy", "apply", strict, "--share", "50%", "-o", "json")), &roll); err != nil {
		t.Fatal(err)
	}
	if len(roll.Nodes) != len(names)/2 {
		t.Fatalf("half of %d nodes are %v", len(names), roll.Nodes)
	}
	want := slices.Clone(names[:2])
	for _, n := range names[2:] {
		if slices.Contains(roll.Nodes, n) {
			want = append(want, n)
		}
	}
	s.await("the share's nodes are out", func(ns map[string]wire.Node) bool { return slices.Equal(out(ns), want) })
	s.await("their agents have said so", func(map[string]wire.Node) bool {
		return json.Unmarshal([]byte(cli("policy", "rollout", "-o", "json")), &roll) == nil && slices.Equal(roll.Taken, roll.Nodes)
	})
	cli("policy", "promote")
	s.await("all are out", func(ns map[string]wire.Node) bool { return len(out(ns)) == len(names) })

	// A policy with a fault in an override is refused whole, each fault with its line.
	bad := file("bad.yaml", policyOf{mode: "act", more: "overrides:\n  - name: x\n    set:\n      ecc: {require_enabled: maybe}\n      guard: {storm_nodes: 1}\n"})
	said, err := s.CLI(s.ctx(), "policy", "apply", bad)
	if err == nil {
		t.Fatalf("a bad policy was taken: %s", said)
	}
	for _, want := range []string{"overrides[0]: names no nodes", "overrides[0].set.ecc.require_enabled", "overrides[0].set.guard"} {
		if !strings.Contains(err.Error()+said, want) {
			t.Errorf("%q is not said in %v %s", want, err, said)
		}
	}
}
