package quota

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// drawTree is a closed tree (the root owns nothing) of up to three levels with random quotas.
func drawTree(t *rapid.T) *Tree {
	limit := func(label string) Amounts {
		a := None()
		a[GPUs] = rapid.Int64Range(Unset, 12).Draw(t, label)
		return a
	}
	closed := Amounts{0, 0, 0, 0}
	specs := []Spec{{Name: "root", Shares: 1, Nominal: closed, Borrow: None(), Lend: None()}}
	for i := range rapid.IntRange(1, 8).Draw(t, "accounts") {
		s := Spec{Name: fmt.Sprintf("a%d", i), Shares: 1, Nominal: limit("nominal"), Borrow: limit("borrow"), Lend: limit("lend")}
		if i > 0 && rapid.Bool().Draw(t, "below") {
			s.Parent = fmt.Sprintf("a%d", rapid.IntRange(0, i-1).Draw(t, "parent"))
		}
		specs = append(specs, s)
	}
	tree, err := NewTree(specs)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Whoever is charged only what fits: the tree never holds more than it owns, nobody goes over nominal plus borrowing
// limit, a guarantee can always be had, and all releases in any order leave nothing behind.
func TestLimitsAreNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t)
		l := NewLedger(tree)
		type charge struct {
			id ID
			a  Amounts
		}
		var charged []charge
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(charged) > 0 && rapid.IntRange(0, 2).Draw(t, "release") == 0 {
				i := rapid.IntRange(0, len(charged)-1).Draw(t, "which")
				l.Release(charged[i].id, charged[i].a)
				charged = append(charged[:i], charged[i+1:]...)
			} else {
				c := charge{ID(rapid.IntRange(1, tree.Len()-1).Draw(t, "account")), Amounts{rapid.Int64Range(1, 8).Draw(t, "gpus")}}
				if _, ok := l.Fits(c.id, c.a); ok {
					before := l.Borrowed()
					own := l.Borrows(c.id, c.a)
					l.Charge(c.id, c.a)
					if after := l.Borrowed(); !own && after != before {
						t.Fatalf("a charge within the quota made borrowed %d of %d", after, before)
					}
					charged = append(charged, c)
				}
			}
			owned := tree.entries[Root].owns[GPUs]
			if held := l.Held(Root)[GPUs]; held > owned {
				t.Fatalf("the tree owns %d and holds %d", owned, held)
			}
			for id := 1; id < tree.Len(); id++ {
				e := &tree.entries[id]
				if e.Borrow[GPUs] != Unset && l.Held(ID(id))[GPUs] > e.owns[GPUs]+e.Borrow[GPUs] {
					t.Fatalf("%s holds %d of %d and %d borrowed", e.Name, l.Held(ID(id))[GPUs], e.owns[GPUs], e.Borrow[GPUs])
				}
				if left := e.guaranteed[GPUs] - l.used[id][GPUs]; left > 0 && len(e.children) == 0 {
					if _, ok := l.Fits(ID(id), Amounts{left}); !ok {
						t.Fatalf("%s cannot have the %d that are left of its guarantee", e.Name, left)
					}
				}
			}
		}
		for _, c := range charged {
			l.Release(c.id, c.a)
		}
		for id := range tree.Len() {
			if l.Held(ID(id)) != (Amounts{}) || l.used[id] != (Amounts{}) {
				t.Fatalf("%s still holds %v, %v", tree.Name(ID(id)), l.Held(ID(id)), l.used[id])
			}
		}
	})
}

// Usage makes nobody's fair share better, and the order of the accounts in the file changes nothing.
func TestFairShareFallsWithUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs := []Spec{}
		for _, a := range []string{"a", "b", "c"} {
			specs = append(specs, Spec{Name: a, Shares: rapid.IntRange(1, 5).Draw(t, "shares"), Nominal: None(), Borrow: None(), Lend: None()})
			for u := range rapid.IntRange(1, 3).Draw(t, "users") {
				specs = append(specs, Spec{Name: fmt.Sprint("u", u), Parent: a, User: true, Shares: rapid.IntRange(1, 5).Draw(t, "shares"), Nominal: None(), Borrow: None(), Lend: None()})
			}
		}
		tree, err := NewTree(specs)
		if err != nil {
			t.Fatal(err)
		}
		h := NewHistory(tree, DefaultHalfLife)
		var users []ID
		for id := range tree.Len() {
			if tree.Spec(ID(id)).User {
				users = append(users, ID(id))
				h.Add(ID(id), 3600, float64(rapid.IntRange(0, 100).Draw(t, "billing")), 1)
			}
		}
		id := rapid.SampledFrom(users).Draw(t, "who")
		classic, fair := h.Classic(1)[id], h.FairTree()[id]
		more := h.Clone()
		more.Add(id, 3600, 50, 1)
		if c := more.Classic(1)[id]; c > classic+1e-12 {
			t.Fatalf("classic share of %s rose from %v to %v with use", tree.Name(id), classic, c)
		}
		if f := more.FairTree()[id]; f > fair {
			t.Fatalf("fair tree rank of %s rose from %v to %v with use", tree.Name(id), fair, f)
		}
	})
}
