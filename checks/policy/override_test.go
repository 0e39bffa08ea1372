package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// set makes a Set of JSON.
func set(t testing.TB, text string) Set {
	t.Helper()
	var s Set
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFor(t *testing.T) {
	p := Default()
	p.Mode = Act
	p.XID.Actions = map[int]string{63: "watch"}
	p.Checks = map[string]Check{"ecc": {Mode: Observe, Action: "drain"}}
	p.Overrides = []Override{
		{Name: "a100", SKU: []string{"A100"}, Set: set(t, `{"ecc":{"require_enabled":false,"max_volatile_corrected":18446744073709551615},"xid":{"actions":{"79":"drain"}}}`)},
		{Name: "rack 1", Nodes: []string{"gpu[001-004]"}, Set: set(t, `{"row_remap":{"max_correctable":3},"checks":{"ecc":{"mode":"act"}}}`)},
		{Name: "pilot", SKU: []string{"H100", "H200"}, Nodes: []string{"gpu004", "gpu9"}, Set: set(t, `{"row_remap":{"max_correctable":1},"mode":"observe"}`)},
	}
	for _, tt := range []struct {
		name, node, sku string
		want            func(*Policy)
	}{
		{"no override fits", "gpu005", "NVIDIA H100 80GB HBM3", func(*Policy) {}},
		{"by product", "gpu005", "NVIDIA A100-SXM4-80GB", func(p *Policy) {
			p.ECC.RequireEnabled, p.ECC.MaxVolatileCorrected = false, 1<<64-1
			p.XID.Actions = map[int]string{63: "watch", 79: "drain"}
		}},
		{"by node: a map is merged by key, and within a key", "gpu001", "NVIDIA H100 80GB HBM3", func(p *Policy) {
			p.RowRemap.MaxCorrectable = 3
			p.Checks = map[string]Check{"ecc": {Mode: Act, Action: "drain"}}
		}},
		{"the later one wins, the earlier ones still hold elsewhere", "gpu004", "NVIDIA H200", func(p *Policy) {
			p.RowRemap.MaxCorrectable, p.Mode = 1, Observe
			p.Checks = map[string]Check{"ecc": {Mode: Act, Action: "drain"}}
		}},
		{"product and node must both fit", "gpu9", "NVIDIA L40S", func(*Policy) {}},
		{"an unknown product fits none", "gpu9", "", func(*Policy) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, before := p, fmt.Sprint(p)
			want.Overrides = nil
			tt.want(&want)
			got := p.For(tt.node, tt.sku)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if after := fmt.Sprint(p); after != before {
				t.Errorf("For changed what it was given:\n%s\n%s", before, after)
			}
			if again := got.For(tt.node, tt.sku); !reflect.DeepEqual(again, got) {
				t.Errorf("resolved once more it is another: %+v", again)
			}
		})
	}
}

// A share is settled for each node, and until it is nothing acts by it.
func TestShares(t *testing.T) {
	p := Default()
	p.Checks = map[string]Check{"ecc": {Mode: Act, Share: 0.25}, "xid": {Share: 0.25}, "rowremap": {Mode: Act, Share: 1}, "driver": {Mode: Off, Share: 0.5}}
	if m := p.ModeOf("ecc"); m != Observe {
		t.Errorf("a share that is not settled has mode %s", m)
	}
	acts := map[string][]string{}
	for i := range 1000 {
		node := fmt.Sprintf("gpu%04d", i)
		got := p.For(node, "")
		for id, c := range got.Checks {
			if c.Share != 0 {
				t.Fatalf("%s: share of %s is not settled", node, id)
			}
			if got.ModeOf(id) == Act {
				acts[id] = append(acts[id], node)
			}
		}
		if got.ModeOf("xid") != Observe || got.ModeOf("driver") != Off {
			t.Fatalf("%s: a share made a check act that does not: %v", node, got.Checks)
		}
	}
	if n := len(acts["ecc"]); n < 200 || n > 300 {
		t.Errorf("a share of 0.25 of 1000 nodes is %d", n)
	}
	if len(acts["rowremap"]) != 1000 {
		t.Errorf("a share of 1 is %d of 1000 nodes", len(acts["rowremap"]))
	}
	p.Mode = Act
	p.Checks["ecc"] = Check{Share: 0.25}
	var both int
	for i := range 1000 {
		node := fmt.Sprintf("gpu%04d", i)
		got := p.For(node, "")
		if in := slices.Contains(acts["ecc"], node); in != (got.ModeOf("ecc") == Act) {
			t.Errorf("%s: the fleet's mode or the check's own, the nodes of a share are the same", node)
		}
		if got.ModeOf("ecc") == Act && got.ModeOf("xid") == Act {
			both++
		}
	}
	if both > 120 {
		t.Errorf("%d of 1000 nodes bear both shares of 0.25: they should be drawn apart", both)
	}
}

func TestALargerShareHoldsTheSmaller(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := rapid.StringMatching(`[a-z]{1,3}[0-9]{1,4}`).Draw(t, "node")
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		if InShare("x", node, Share(min(a, b))) && !InShare("x", node, Share(max(a, b))) {
			t.Fatalf("%s is in %v and not in %v", node, min(a, b), max(a, b))
		}
		if !InShare("x", node, 1) || InShare("x", node, 0) {
			t.Fatal("all or none")
		}
	})
}

func TestMatchSKU(t *testing.T) {
	for _, tt := range []struct {
		pattern, product string
		want             bool
	}{
		{"H100", "NVIDIA H100 80GB HBM3", true}, {"h100", "NVIDIA H100 PCIe", true}, {"H100 PCIe", "NVIDIA H100 PCIe", true}, {"H100 PCIe", "NVIDIA H100 80GB HBM3", false},
		{"A10", "NVIDIA A10", true}, {"A10", "NVIDIA A100-SXM4-80GB", false}, {"A10", "NVIDIA A10G", false},
		{"A100-SXM4", "NVIDIA A100-SXM4-80GB", true}, {"A100 SXM4", "NVIDIA A100-SXM4-80GB", true}, {"A100 80GB", "NVIDIA A100-SXM4-80GB", false},
		{"L40", "NVIDIA L40S", false}, {"H100", "NVIDIA GH200 480GB", false}, {"RTX", "NVIDIA RTX 6000 Ada Generation", true},
		{"", "NVIDIA H100", false}, {"-", "NVIDIA H100", false}, {"H100", "", false}, {"NVIDIA H100 80GB HBM3 x", "NVIDIA H100 80GB HBM3", false},
	} {
		if got := MatchSKU(tt.pattern, tt.product); got != tt.want {
			t.Errorf("%q of %q: %t", tt.pattern, tt.product, got)
		}
	}
}

func TestOverrideFaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Override
		set  string
		want string // the faults' paths and the start of their messages, one a line
	}{
		{"no name, no nodes, nothing set", Override{}, `{}`, "overrides[0]: names no nodes\noverrides[0].name: want a name\noverrides[0].set: sets nothing"},
		{"a pattern without a word", Override{Name: "x", SKU: []string{"H100", "-"}}, `{"mode":"act"}`, `overrides[0].sku[1]: "-": want words`},
		{"no hostlist", Override{Name: "x", Nodes: []string{"gpu[1-", ""}}, `{"mode":"act"}`, "overrides[0].nodes[0]: hostlist\noverrides[0].nodes[1]: \"\" names no node"},
		{"what is the fleet's", Override{Name: "x", SKU: []string{"H100"}}, `{"guard":{"storm_nodes":9},"version":3}`, "overrides[0].set.guard: cannot be set\noverrides[0].set.version: cannot be set"},
		{"a value that is none", Override{Name: "x", SKU: []string{"H100"}}, `{"row_remap":{"max_correctable":-1},"mode":"maybe"}`, "overrides[0].set.mode: \"maybe\"\noverrides[0].set.row_remap.max_correctable: -1"},
		{"a value of another type", Override{Name: "x", SKU: []string{"H100"}}, `{"row_remap":{"max_correctable":"many"}}`, "overrides[0].set: cannot unmarshal string"},
		{"a value that does not exist", Override{Name: "x", SKU: []string{"H100"}}, `{"row_remap":{"most":1}}`, `overrides[0].set: unknown field "most"`},
		{"a name in other letters", Override{Name: "x", SKU: []string{"H100"}}, `{"Row_Remap":{"max_correctable":1}}`, "overrides[0].set: Row_Remap sets nothing"},
		{"a check's action that is none", Override{Name: "x", SKU: []string{"H100"}}, `{"checks":{"ecc":{"action":"burn","share":2}}}`, "overrides[0].set.checks.ecc.action: action \"burn\"\noverrides[0].set.checks.ecc.share: 2: want a share"},
		{"too long together with the top level", Override{Name: "x", SKU: []string{"H100"}}, `{"hooks":{"budget":"17s"}}`, "overrides[0].set.hooks.permit_wait: 4s after a suite of 17s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			tt.o.Set = set(t, tt.set)
			p.Overrides = []Override{tt.o}
			var got []string
			for _, f := range Validate(p) {
				got = append(got, f.Path+": "+f.Message)
			}
			want := strings.Split(tt.want, "\n")
			if len(got) != len(want) {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), tt.want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("got %s\nwant %s", got[i], want[i])
				}
			}
		})
	}
}

func TestFaultsOfTheTopLevelAreToldOnce(t *testing.T) {
	p := Default()
	p.RowRemap.MaxCorrectable = -1
	for i := range 3 {
		p.Overrides = append(p.Overrides, Override{Name: "same", Nodes: []string{fmt.Sprintf("n%d", i)}, Set: set(t, `{"mode":"act"}`)})
	}
	var got []string
	for _, f := range Validate(p) {
		got = append(got, f.Path)
	}
	if want := []string{"overrides[1].name", "overrides[2].name", "row_remap.max_correctable"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	p.Overrides = make([]Override, maxOverrides+1)
	if fs := Validate(p); len(fs) != 2 || fs[0].Path != "overrides" {
		t.Errorf("too many overrides: %v", fs)
	}
}

// Names in a file and on the wire are the same, and only what is empty when it is not set is left out: a Set rests on both.
func TestNamesOnTheWireAreTheFiles(t *testing.T) {
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		switch typ.Kind() {
		case reflect.Map, reflect.Slice:
			walk(typ.Elem(), path+"[]")
			return
		case reflect.Struct:
		default:
			return
		}
		for f := range typ.Fields() {
			if !f.IsExported() {
				continue
			}
			file, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			wire, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			if file == "-" {
				continue
			}
			if wire != file || wire == "" {
				t.Errorf("%s.%s: %q in a file, %q on the wire", path, f.Name, file, wire)
			}
			if k := f.Type.Kind(); opts == "omitempty" && k != reflect.Map && k != reflect.Slice && typ != reflect.TypeFor[Check]() {
				t.Errorf("%s.%s: a zero that a Set sets would be left out", path, f.Name)
			}
			walk(f.Type, path+"."+f.Name)
		}
	}
	walk(reflect.TypeFor[Policy](), "Policy")
}

func BenchmarkFor(b *testing.B) {
	p := Default()
	for i := range 8 {
		p.Overrides = append(p.Overrides, Override{Name: fmt.Sprint(i), SKU: []string{"H100"}, Nodes: []string{"gpu[00001-10000]"}, Set: set(b, `{"row_remap":{"max_correctable":3}}`)})
	}
	t := NewTable(p)
	b.Run("match", func(b *testing.B) {
		for b.Loop() {
			t.Match("gpu00500", "NVIDIA H100 80GB HBM3")
		}
	})
	m := t.Match("gpu00500", "NVIDIA H100 80GB HBM3")
	b.Run("resolve", func(b *testing.B) {
		for b.Loop() {
			t.Resolve(m)
		}
	})
}
