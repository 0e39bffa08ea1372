package policy

import (
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// A Profile is what is published of a product: what its nodes should show. Values that belong to the board itself are what
// the policy starts from for that product, where the policy's top level still has its built-in value and no override sets
// another. The rest (network, processors, memory) is shown to compare with and judges nothing: it is the builder's choice.
type Profile struct {
	Name  string
	SKU   []string // product names, as MatchSKU reads them
	Sizes []int    // GPUs that nodes and virtual machines with this product are sold with, ascending; empty: any number
	Board []int    // of these, the ones at which all NVLinks are wired and on
	Facts []Fact
}

// A Fact is one published value with its source.
type Fact struct {
	What   string // in words, with the unit
	Value  string // JSON, where Path is set
	Path   string // the value of the policy that starts from it; empty: it judges nothing
	Whole  bool   // only on a node that shows a whole board: a virtual machine with part of one has its links off
	Source string
}

// Profiles gives the built-in profiles, ordered by generation.
func Profiles() []Profile { return slices.Clone(profiles) }

// ProfileOf gives the profile of a product; false when there is none.
func ProfileOf(sku string) (Profile, bool) {
	for _, p := range profiles {
		if slices.ContainsFunc(p.SKU, func(pattern string) bool { return MatchSKU(pattern, sku) }) {
			return p, true
		}
	}
	return Profile{}, false
}

// FindProfiles gives the profiles that a person may mean by some words: those of the product, or with the words in their
// name.
func FindProfiles(text string) []Profile {
	if p, ok := ProfileOf(text); ok {
		return []Profile{p}
	}
	var out []Profile
	for _, p := range profiles {
		if MatchSKU(text, p.Name) || slices.ContainsFunc(p.SKU, func(sku string) bool { return MatchSKU(text, sku) }) {
			out = append(out, p)
		}
	}
	return out
}

// Hardware is what is known of a node when its policy is resolved.
type Hardware struct {
	SKU      string // product of its GPUs; empty: not known
	GPUs     int    // accepted or, where nothing was accepted, shown
	Accepted bool   // its GPUs were accepted at enrolment: then those are what is expected, whatever others show
}

// HardwareOf is the hardware of a node that was accepted as expected, nil where nothing was, and now shows seen.
func HardwareOf(seen checks.Inventory, expected *checks.Inventory) Hardware {
	h := Hardware{SKU: seen.SKU(), GPUs: len(seen.GPUs)}
	if expected != nil && len(expected.GPUs) > 0 {
		h.Accepted, h.GPUs = true, len(expected.GPUs)
		if h.SKU == "" {
			h.SKU = expected.SKU()
		}
	}
	return h
}

// values gives what the profile sets for a node, by path.
func (p Profile) values(h Hardware) map[string]any {
	out := map[string]any{}
	for _, f := range p.Facts {
		if f.Path != "" && (!f.Whole || slices.Contains(p.Board, h.GPUs)) {
			put(out, f.Path, rawNumber(f.Value))
		}
	}
	if !h.Accepted && h.GPUs > 0 && !slices.Contains(p.Sizes, h.GPUs) {
		// Nobody sells five of eight: before anything is accepted, the count should be the next size up.
		if i := slices.IndexFunc(p.Sizes, func(n int) bool { return n > h.GPUs }); i >= 0 {
			put(out, "inventory.count", p.Sizes[i])
		}
	}
	return out
}

// put sets a value in a tree by its path.
func put(t map[string]any, path string, v any) {
	key, rest, below := strings.Cut(path, ".")
	if !below {
		t[key] = v
		return
	}
	sub, ok := t[key].(map[string]any)
	if !ok {
		sub = map[string]any{}
		t[key] = sub
	}
	put(sub, rest, v)
}
