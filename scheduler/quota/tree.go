package quota

import (
	"errors"
	"fmt"
)

// ShareParent as a share means that the account or user has no share of its own: it stands with its parent. Slurm's
// fairshare=parent.
const ShareParent = -1

// A Spec configures one account or user.
type Spec struct {
	Name   string
	Parent string // empty: the root
	User   bool   // a user in account Parent; has no children
	Shares int    // of its siblings' sum; ShareParent

	Nominal Amounts // its own; Unset: none
	Borrow  Amounts // above nominal at most; Unset: no limit
	Lend    Amounts // to others at most; Unset: all that is idle
}

// An ID names an account or user of one tree. Root is the tree's root.
type ID int32

// Root is the root of every tree.
const Root ID = 0

// An entry is a Spec in its tree.
type entry struct {
	Spec
	parent   ID
	children []ID
	// Of the whole subtree: what its accounts own together, less what they keep to themselves; and what this
	// subtree keeps to itself. Infinite where the root has no nominal quota.
	quota, guaranteed Amounts
	owns              Amounts // the nominal quotas of the subtree
	// For fair share: the nearest ancestor with a share of its own, and those who stand below this one in that sense.
	fairParent   ID
	fairChildren []ID
	shareSum     int // of its fairChildren
}

// A Tree is the accounts and users as configured. It does not change.
type Tree struct {
	entries []entry
	names   map[string]ID
	users   int
}

// infinite is more than any fleet has, and small enough to be added up.
const infinite = int64(1) << 50

// Endless is an amount that no fleet has: what is available to an account beyond it has no limit.
const Endless = infinite / 2

// User is the name under which the tree knows a user of an account: a user may be in several.
func User(account, user string) string { return account + "/" + user }

// NewTree builds a tree. specs may come in any order; the root is given as a Spec named "root" or left out. All faults are
// reported at once.
func NewTree(specs []Spec) (*Tree, error) {
	t := &Tree{names: map[string]ID{"root": Root}, entries: []entry{{Spec: Spec{Name: "root", Shares: 1, Nominal: None(), Borrow: None(), Lend: None()}, parent: -1, fairParent: -1}}}
	var faults []error
	for _, s := range specs {
		if s.Name == "root" && !s.User { // a user may be called so too
			t.entries[Root].Spec = s
			continue
		}
		key := s.Name
		if s.User {
			key = User(s.Parent, s.Name)
			t.users++
		}
		if _, twice := t.names[key]; twice {
			faults = append(faults, fmt.Errorf("account %s: configured twice", key))
			continue
		}
		if s.Shares < ShareParent {
			faults = append(faults, fmt.Errorf("account %s: shares %d: want 0 or more, or parent", key, s.Shares))
		}
		t.names[key] = ID(len(t.entries))
		t.entries = append(t.entries, entry{Spec: s})
	}
	for i := 1; i < len(t.entries); i++ {
		e := &t.entries[i]
		if e.Spec.Parent == "" {
			e.Spec.Parent = "root"
		}
		p, ok := t.names[e.Spec.Parent]
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("account %s: its parent %s is not configured", e.Name, e.Spec.Parent))
		case t.entries[p].Spec.User:
			faults = append(faults, fmt.Errorf("account %s: its parent %s is a user", e.Name, e.Spec.Parent))
		default:
			e.parent = p
			t.entries[p].children = append(t.entries[p].children, ID(i))
		}
	}
	if len(faults) == 0 {
		if seen := t.visit(Root, func(ID) {}); seen != len(t.entries) {
			faults = append(faults, fmt.Errorf("%d accounts are their own ancestors: a tree has one root", len(t.entries)-seen))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	t.fairFamilies()
	t.subtreeQuotas(Root)
	return t, nil
}

// visit calls f for id and all below it, parents first, and returns how many they are.
func (t *Tree) visit(id ID, f func(ID)) int {
	f(id)
	n := 1
	for _, c := range t.entries[id].children {
		n += t.visit(c, f)
	}
	return n
}

// fairFamilies says who stands with whom for fair share: the children of an account without a share of its own stand with
// that account's siblings.
func (t *Tree) fairFamilies() {
	t.visit(Root, func(id ID) {
		e := &t.entries[id]
		if id == Root {
			return
		}
		p := e.parent
		for p != Root && t.entries[p].Shares == ShareParent {
			p = t.entries[p].parent
		}
		e.fairParent = p
		if e.Shares == ShareParent && !e.User {
			return
		}
		t.entries[p].fairChildren = append(t.entries[p].fairChildren, id)
		if e.Shares != ShareParent {
			t.entries[p].shareSum += e.Shares
		}
	})
}

// Len is how many accounts and users there are, the root among them. IDs go from 0 to Len-1.
func (t *Tree) Len() int { return len(t.entries) }

// Find is the account of that name, or the user as User names it.
func (t *Tree) Find(name string) (ID, bool) {
	id, ok := t.names[name]
	return id, ok
}

// Spec is how id was configured.
func (t *Tree) Spec(id ID) Spec { return t.entries[id].Spec }

// Parent is the account above id; ok is false for the root.
func (t *Tree) Parent(id ID) (ID, bool) {
	p := t.entries[id].parent
	return p, p >= 0
}

// Children are the accounts and users directly below id.
func (t *Tree) Children(id ID) []ID { return t.entries[id].children }

// Name is the account's name, or account/user.
func (t *Tree) Name(id ID) string {
	e := &t.entries[id]
	if e.User {
		return User(t.entries[e.parent].Name, e.Name)
	}
	return e.Name
}
