package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// rawNumber gives a JSON value as tree reads it.
func rawNumber(text string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic("policy: a profile's value is no JSON: " + text)
	}
	return v
}

// ForNode gives the policy as it holds for one node, with what is known of its product filled in below it: what most nodes
// of the product show (learned), over that what is published of it (its profile), and over both the policy, where its top
// level says anything but the built-in value or an override fits. What names no value of the policy is left out.
func (p Policy) ForNode(node string, h Hardware, learned Set) Policy {
	below := map[string]any{}
	if !learned.Empty() {
		below = learned.Tree()
	}
	if h.Accepted {
		drop(below, "inventory", "count")
	}
	if profile, ok := ProfileOf(h.SKU); ok {
		below = merge(below, normal(profile.values(h)))
	}
	if len(below) > 0 {
		p = p.over(below)
	}
	return p.For(node, h.SKU)
}

// Learned gives those values of learned by which ForNode has the node judged, as "cpu.count 192", sorted by path: where the
// policy says so itself, or what is published of the product is the same, nothing was learned.
func (p Policy) Learned(node string, h Hardware, learned Set) []string {
	if learned.Empty() {
		return nil
	}
	with, err := treeOf(p.ForNode(node, h, learned))
	if err != nil {
		return nil
	}
	without, err := treeOf(p.ForNode(node, h, Set{}))
	if err != nil {
		return nil
	}
	out := changed("", learned.Tree(), with, without)
	slices.Sort(out)
	return out
}

// changed names the values of asked at which with has them and without has others.
func changed(path string, asked, with, without map[string]any) (out []string) {
	for k, v := range asked {
		if sub, section := v.(map[string]any); section {
			w, _ := with[k].(map[string]any)
			o, _ := without[k].(map[string]any)
			out = append(out, changed(path+k+".", sub, w, o)...)
		} else if reflect.DeepEqual(with[k], v) && !reflect.DeepEqual(without[k], v) {
			out = append(out, fmt.Sprintf("%s%s %v", path, k, v))
		}
	}
	return out
}

// normal gives a tree in the form in which tree reads it.
func normal(t map[string]any) map[string]any {
	out, err := treeOf(t)
	if err != nil {
		panic("policy: a value that JSON cannot hold: " + err.Error())
	}
	return out
}

func drop(t map[string]any, section, key string) {
	if sub, ok := t[section].(map[string]any); ok {
		delete(sub, key)
	}
}

// over gives p with the values of below where p has the built-in ones.
func (p Policy) over(below map[string]any) Policy {
	have, err := treeOf(p)
	if err != nil {
		return p
	}
	builtin, err := treeOf(Default())
	if err != nil {
		return p
	}
	var s Set
	if s.take(unset(below, have, builtin)) != nil || s.Empty() {
		return p
	}
	made, err := p.with(s)
	if err != nil || len(values(made)) > len(values(p)) {
		return p // what others show makes no sense here
	}
	return made
}

// unset gives those values of below that have holds as builtin does.
func unset(below, have, builtin map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range below {
		h, ok := have[k]
		if !ok {
			continue
		}
		if sub, section := v.(map[string]any); section {
			hs, _ := h.(map[string]any)
			bs, _ := builtin[k].(map[string]any)
			out[k] = unset(sub, hs, bs)
			continue
		}
		if reflect.DeepEqual(h, builtin[k]) {
			out[k] = v
		}
	}
	return out
}
