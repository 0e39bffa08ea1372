package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
)

func TestProfileOf(t *testing.T) {
	for product, want := range map[string]string{
		"NVIDIA A100-SXM4-80GB": "HGX A100", "NVIDIA A100-SXM4-40GB": "HGX A100", "NVIDIA A100 80GB PCIe": "", "NVIDIA H100 80GB HBM3": "HGX H100", "NVIDIA H100 PCIe": "", "NVIDIA H100 NVL": "",
		"NVIDIA H200": "HGX H200", "NVIDIA B200": "HGX B200", "NVIDIA GB200": "GB200 NVL72", "NVIDIA GH200 480GB": "", "NVIDIA L40S": "L40S", "NVIDIA L40": "", "NVIDIA A10": "A10", "NVIDIA A10G": "",
		"NVIDIA RTX 6000 Ada Generation": "RTX class", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX class", "NVIDIA GeForce RTX 4090": "RTX class", "": "",
	} {
		if p, ok := ProfileOf(product); ok != (want != "") || p.Name != want {
			t.Errorf("%q: profile %q, want %q", product, p.Name, want)
		}
	}
	for text, want := range map[string]int{"H100": 1, "NVIDIA H100 80GB HBM3": 1, "HGX": 4, "GB200": 1, "NVL72": 1, "V100": 0, "": 0} {
		if got := FindProfiles(text); len(got) != want {
			t.Errorf("%q finds %d profiles, want %d", text, len(got), want)
		}
	}
}

func TestEveryNumberHasItsSource(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Profiles() {
		if names[p.Name] || p.Name == "" || len(p.SKU) == 0 || len(p.Facts) < 4 {
			t.Errorf("profile %+v", p)
		}
		names[p.Name] = true
		if !slices.IsSorted(p.Sizes) {
			t.Errorf("%s: sizes %v", p.Name, p.Sizes)
		}
		for _, f := range p.Facts {
			if f.What == "" || f.Value == "" || len(f.Source) < 10 {
				t.Errorf("%s: %+v", p.Name, f)
			}
			if section, name, _ := strings.Cut(f.Path, "."); f.Path != "" && !knows(t, section, name) {
				t.Errorf("%s: %s is no value of the policy", p.Name, f.Path)
			}
			if f.Path != "" && !json.Valid([]byte(f.Value)) {
				t.Errorf("%s: %s fills %s and is no JSON", p.Name, f.Value, f.Path)
			}
		}
	}
}

// knows reports whether the policy has that value.
func knows(t *testing.T, section, name string) bool {
	t.Helper()
	tree, err := treeOf(Default())
	if err != nil {
		t.Fatal(err)
	}
	sub, _ := tree[section].(map[string]any)
	_, ok := sub[name]
	return ok
}

func TestNVLinksOfAWholeBoardAreThePublishedOnes(t *testing.T) {
	for _, tt := range []struct {
		h    Hardware
		want int
	}{
		{Hardware{SKU: "NVIDIA H100 80GB HBM3", GPUs: 8, Accepted: true}, 18}, {Hardware{SKU: "NVIDIA A100-SXM4-80GB", GPUs: 8}, 12}, {Hardware{SKU: "NVIDIA GB200", GPUs: 4}, 18},
		{Hardware{SKU: "NVIDIA H100 80GB HBM3", GPUs: 4}, 0}, {Hardware{SKU: "NVIDIA H100 80GB HBM3", GPUs: 1}, 0}, {Hardware{SKU: "NVIDIA H100 PCIe", GPUs: 8}, 0}, {Hardware{SKU: "NVIDIA L40S", GPUs: 8}, 0},
	} {
		if got := Default().ForNode("n", tt.h, Set{}).NVLink.Links; got != tt.want {
			t.Errorf("%+v: %d links, want %d", tt.h, got, tt.want)
		}
	}
	p := Default()
	p.NVLink.Links = 12
	if got := p.ForNode("n", Hardware{SKU: "NVIDIA H200", GPUs: 8}, Set{}).NVLink.Links; got != 12 {
		t.Errorf("%d links, want the policy's", got)
	}
}

func TestForNodeFillsInWhatThePolicyLeavesOpen(t *testing.T) {
	whole := Hardware{SKU: "NVIDIA H100 80GB HBM3", GPUs: 8}
	rtx := Hardware{SKU: "NVIDIA RTX 6000 Ada Generation", GPUs: 2}
	for _, tt := range []struct {
		name    string
		h       Hardware
		learned string
		change  func(*Policy)
		want    string // count, name, ECC required
	}{
		{"a whole board needs no count", whole, `{}`, nil, "0 true"},
		{"seven of eight, before any are accepted: the profile knows better", Hardware{SKU: whole.SKU, GPUs: 7}, `{}`, nil, "8 true"},
		{"three of four", Hardware{SKU: whole.SKU, GPUs: 3}, `{}`, nil, "4 true"},
		{"seven accepted", Hardware{SKU: whole.SKU, GPUs: 7, Accepted: true}, `{}`, nil, "0 true"},
		{"more than any board", Hardware{SKU: whole.SKU, GPUs: 9}, `{}`, nil, "0 true"},
		{"none seen", Hardware{SKU: whole.SKU}, `{}`, nil, "0 true"},
		{"the policy's count stands over the profile's", Hardware{SKU: whole.SKU, GPUs: 7}, `{}`, func(p *Policy) { p.Inventory.Count = 7 }, "7 true"},
		{"an override's count as well", Hardware{SKU: whole.SKU, GPUs: 7}, `{}`, func(p *Policy) {
			p.Overrides = []Override{{Name: "seven", SKU: []string{"H100"}, Set: set(t, `{"inventory":{"count":6}}`)}}
		}, "6 true"},
		{"learned, where the profile does not say", whole, `{"inventory":{"count":4}}`, nil, "4 true"},
		{"the profile stands over what was learned", Hardware{SKU: whole.SKU, GPUs: 7}, `{"inventory":{"count":4}}`, nil, "8 true"},
		{"what was accepted stands over what was learned", Hardware{SKU: "NVIDIA L40S", GPUs: 2, Accepted: true}, `{"inventory":{"count":4}}`, nil, "0 true"},
		{"learned of a product without a profile", Hardware{SKU: "NVIDIA L4", GPUs: 1}, `{"inventory":{"count":4}}`, nil, "4 true"},
		{"learned what this version does not know", Hardware{SKU: "NVIDIA L4", GPUs: 1}, `{"inventory":{"count":4},"fans":{"count":9}}`, nil, "4 true"},
		{"learned what makes no sense", Hardware{SKU: "NVIDIA L4", GPUs: 1}, `{"inventory":{"count":-4}}`, nil, "0 true"},
		{"a product whose profile wants less than the built-in policy", rtx, `{}`, nil, "0 false"},
		{"and an owner who wants it all the same", rtx, `{}`, func(p *Policy) {
			p.Overrides = []Override{{Name: "ecc", SKU: []string{"RTX"}, Set: set(t, `{"ecc":{"require_enabled":true}}`)}}
		}, "0 true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Default()
			if tt.change != nil {
				tt.change(&p)
			}
			got := p.ForNode("gpu001", tt.h, set(t, tt.learned))
			if s := fmt.Sprint(got.Inventory.Count, got.ECC.RequireEnabled); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
			if fs := Validate(got); len(fs) > 0 {
				t.Errorf("%v", fs)
			}
		})
	}
}

func TestLearnedNamesWhatTheFleetDecided(t *testing.T) {
	h := Hardware{SKU: "NVIDIA H100 80GB HBM3", GPUs: 8}
	for _, tt := range []struct {
		name, learned string
		change        func(*Policy)
		want          []string
	}{
		{"nothing learned", `{}`, nil, nil},
		{"sorted, with their values", `{"nvlink":{"links":17},"cpu":{"count":192}}`, func(p *Policy) { p.NVLink.Links = 16 }, []string{"cpu.count 192"}},
		{"two", `{"memory":{"bytes":18446744073709551615},"cpu":{"count":192}}`, nil, []string{"cpu.count 192", "memory.bytes 18446744073709551615"}},
		{"policy says so itself", `{"cpu":{"count":192}}`, func(p *Policy) { p.CPU.Count = 192 }, nil},
		{"policy says otherwise", `{"cpu":{"count":192}}`, func(p *Policy) { p.CPU.Count = 96 }, nil},
		{"an override says otherwise", `{"cpu":{"count":192}}`, func(p *Policy) {
			p.Overrides = []Override{{Name: "small", SKU: []string{"H100"}, Set: set(t, `{"cpu":{"count":96}}`)}}
		}, nil},
		{"the profile says so", `{"nvlink":{"links":18}}`, nil, nil},
		{"what this version does not know", `{"fans":{"count":9}}`, nil, nil},
	} {
		p := Default()
		if tt.change != nil {
			tt.change(&p)
		}
		if got := p.Learned("gpu001", h, set(t, tt.learned)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHardwareOf(t *testing.T) {
	of := func(name string, n int) checks.Inventory {
		var inv checks.Inventory
		for range n {
			inv.GPUs = append(inv.GPUs, checks.GPU{Name: name})
		}
		return inv
	}
	eight, none := of("NVIDIA H100", 8), of("", 0)
	for _, tt := range []struct {
		name     string
		seen     checks.Inventory
		expected *checks.Inventory
		want     Hardware
	}{
		{"nothing accepted", of("NVIDIA H100", 7), nil, Hardware{"NVIDIA H100", 7, false}},
		{"accepted as empty is not accepted", of("NVIDIA H100", 7), &none, Hardware{"NVIDIA H100", 7, false}},
		{"accepted", of("NVIDIA H100", 7), &eight, Hardware{"NVIDIA H100", 8, true}},
		{"accepted and not seen", none, &eight, Hardware{"NVIDIA H100", 8, true}},
		{"changed for another product", of("NVIDIA H200", 8), &eight, Hardware{"NVIDIA H200", 8, true}},
	} {
		if got := HardwareOf(tt.seen, tt.expected); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestLearn(t *testing.T) {
	rule := Baseline{MinNodes: 3, Share: 0.75}
	shown := func(sku string, n int, from int, values map[string]int64) []Shown {
		var out []Shown
		for i := range n {
			out = append(out, Shown{Node: fmt.Sprintf("n%02d", from+i), SKU: sku, Driver: "550.1", Values: values})
		}
		return out
	}
	text := func(ls []Learned) string {
		var out []string
		for _, l := range ls {
			for _, v := range l.Values {
				out = append(out, fmt.Sprintf("%s/%d %s=%s %d/%d %t %v", l.SKU, l.Nodes, v.Path, v.Value, v.Nodes, v.Of, v.Holds, v.Others))
			}
			out = append(out, "sets "+l.Set().JSON())
		}
		return strings.Join(out, "\n")
	}
	for _, tt := range []struct {
		name  string
		nodes []Shown
		want  string
	}{
		{"no node", nil, ""},
		{"a node whose product is not known teaches nothing", shown("", 9, 0, map[string]int64{"nvlink.links": 18}), ""},
		{"three in four agree", append(shown("H100", 3, 0, map[string]int64{"nvlink.links": 18}), shown("H100", 1, 3, map[string]int64{"nvlink.links": 17})...),
			"H100/4 inventory.driver=550.1 4/4 true []\nH100/4 nvlink.links=18 3/4 true [n03]\n" + `sets {"nvlink":{"links":18}}`},
		{"a share that 74 of 100 are not", append(shown("H100", 74, 0, map[string]int64{"x": 1}), shown("H100", 26, 74, map[string]int64{"x": 2})...), ""},
		{"one less in the share", append(shown("H100", 4, 0, map[string]int64{"nvlink.links": 18}), shown("H100", 2, 4, map[string]int64{"nvlink.links": 17})...),
			"H100/6 inventory.driver=550.1 6/6 true []\nH100/6 nvlink.links=18 4/6 false [n04 n05]\nsets {}"},
		{"one node too few", shown("H100", 2, 0, map[string]int64{"nvlink.links": 18}), "H100/2 inventory.driver=550.1 2/2 false []\nH100/2 nvlink.links=18 2/2 false []\nsets {}"},
		{"what a node does not show does not count against it", append(shown("H100", 3, 0, map[string]int64{"nvlink.links": 18, "inventory.count": 8}), shown("H100", 9, 3, map[string]int64{"inventory.count": 8})...),
			"H100/12 inventory.count=8 12/12 true []\nH100/12 inventory.driver=550.1 12/12 true []\nH100/12 nvlink.links=18 3/3 true []\n" + `sets {"inventory":{"count":8},"nvlink":{"links":18}}`},
		{"each product for itself", append(shown("B", 3, 0, map[string]int64{"x": 1}), shown("A", 3, 3, map[string]int64{"x": 2})...),
			"A/3 inventory.driver=550.1 3/3 true []\nA/3 x=2 3/3 true []\nsets {\"x\":2}\nB/3 inventory.driver=550.1 3/3 true []\nB/3 x=1 3/3 true []\nsets {\"x\":1}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" && len(tt.nodes) == 100 {
				if v := Learn(tt.nodes, rule)[0].Values[1]; v.Holds || v.Nodes != 74 || v.Of != 100 || len(v.Others) != 26 {
					t.Errorf("%+v", v)
				}
				return
			}
			got := text(Learn(tt.nodes, rule))
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			slices.Reverse(tt.nodes)
			if again := text(Learn(tt.nodes, rule)); again != got {
				t.Errorf("in another order it is\n%s", again)
			}
		})
	}
}
