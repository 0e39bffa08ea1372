package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Set holds some of a policy's values. It keeps them as JSON with the policy's names: {"ecc":{"require_enabled":false}}.
// Whether the values are a policy's is for Validate to say.
type Set struct{ text string } // of an object, compact, keys sorted; empty for an empty object

// Empty reports whether it sets nothing.
func (s Set) Empty() bool { return s.text == "" }

// Tree gives what is set: a map for a section, the value as encoding/json reads it (numbers as json.Number) for the rest.
func (s Set) Tree() map[string]any {
	tree, err := tree([]byte(s.JSON()))
	if err != nil {
		panic(fmt.Sprintf("policy: a set that is not what it was made of: %v", err))
	}
	return tree
}

// JSON gives what is set as an object.
func (s Set) JSON() string {
	if s.text == "" {
		return "{}"
	}
	return s.text
}

// Sections names the sections in which it sets something, sorted.
func (s Set) Sections() []string {
	var out []string
	for k := range s.Tree() {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// MarshalJSON writes the object.
func (s Set) MarshalJSON() ([]byte, error) { return []byte(s.JSON()), nil }

// UnmarshalJSON reads an object. Sections that set nothing are left out.
func (s *Set) UnmarshalJSON(b []byte) error {
	t, err := tree(b)
	if err != nil {
		return err
	}
	return s.take(t)
}

func (s *Set) take(t map[string]any) error {
	prune(t)
	s.text = ""
	if len(t) == 0 {
		return nil
	}
	text, err := json.Marshal(t) // sorts keys
	s.text = string(text)
	return err
}

// Whole gives a value that a file's section is read into before Take keeps what the file sets. With Take it lets a reader
// hold the section to the types of a whole policy.
func (s *Set) Whole() any { return new(Policy) }

// Take keeps those values of whole, a *Policy, that keys names: a map for a section that the file opens, else a value.
func (s *Set) Take(whole any, keys map[string]any) error {
	all, err := treeOf(whole)
	if err != nil {
		return err
	}
	kept, err := keep(all, keys, "")
	if err != nil {
		return err
	}
	return s.take(kept)
}

// keep gives the part of all that keys names. What all lacks would be set in vain: a key in another spelling than the
// policy's (079 for 79), or a value that means "not set".
func keep(all, keys map[string]any, path string) (map[string]any, error) {
	out := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		below, section := keys[k].(map[string]any)
		v, ok := all[k]
		switch inner, object := v.(map[string]any); {
		case section && len(below) == 0:
		case !ok:
			return nil, fmt.Errorf("%s%s sets nothing: write it as `assay policy show` does", path, k)
		case section && object:
			part, err := keep(inner, below, path+k+".")
			if err != nil {
				return nil, err
			}
			out[k] = part
		default:
			out[k] = v
		}
	}
	return out, nil
}

// with gives p with the values of s. p and what it refers to are left as they are.
func (p Policy) with(s Set) (Policy, error) {
	base, err := treeOf(p)
	if err != nil {
		return Policy{}, err
	}
	text, err := json.Marshal(merge(base, s.Tree()))
	if err != nil {
		return Policy{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var out Policy
	if err := d.Decode(&out); err != nil {
		return Policy{}, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	made, err := treeOf(out)
	if err != nil {
		return Policy{}, err
	}
	_, err = keep(made, s.Tree(), "") // encoding/json takes names in any case; the merge has not
	return out, err
}

// merge gives a with b laid over it. It may change a.
func merge(a, b map[string]any) map[string]any {
	for k, v := range b {
		below, ok := v.(map[string]any)
		under, had := a[k].(map[string]any)
		if ok && had {
			a[k] = merge(under, below)
		} else {
			a[k] = v
		}
	}
	return a
}

// prune removes what sets nothing.
func prune(t map[string]any) {
	for k, v := range t {
		sub, ok := v.(map[string]any)
		if ok {
			prune(sub)
		}
		if v == nil || ok && len(sub) == 0 {
			delete(t, k)
		}
	}
}

func treeOf(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return tree(text)
}

func tree(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a count may need all of its 64 bits
	var t map[string]any
	if err := d.Decode(&t); err != nil {
		return nil, err
	}
	return t, nil
}
