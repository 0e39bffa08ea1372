package quota

import "slices"

// A Ledger is what the accounts of a tree hold now. Fits, Charge and Release cost one step a level of the tree.
type Ledger struct {
	tree *Tree
	used []Amounts // of the subtree, less what its guaranteed quota covers further down
	held []Amounts // of the subtree, all
}

// NewLedger is a ledger in which nobody holds anything.
func NewLedger(t *Tree) *Ledger {
	return &Ledger{tree: t, used: make([]Amounts, t.Len()), held: make([]Amounts, t.Len())}
}

// Clone is a copy that can be charged by itself.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{tree: l.tree, used: slices.Clone(l.used), held: slices.Clone(l.held)}
}

// Held is what id and all below it hold.
func (l *Ledger) Held(id ID) Amounts { return l.held[id] }

// subtreeQuotas adds up the quotas from the leaves: what a child does not keep to itself is its parent's to lend.
func (t *Tree) subtreeQuotas(id ID) {
	e := &t.entries[id]
	for i := range e.quota {
		e.owns[i] = max(0, e.Nominal[i])
		e.quota[i] = e.owns[i]
		if id == Root && e.Nominal[i] == Unset {
			e.quota[i] = infinite
		}
	}
	for _, c := range e.children {
		t.subtreeQuotas(c)
		for i := range e.quota {
			e.owns[i] += t.entries[c].owns[i]
			e.quota[i] += t.entries[c].quota[i] - t.entries[c].guaranteed[i]
		}
	}
	for i := range e.quota {
		if id != Root && e.Lend[i] != Unset {
			e.guaranteed[i] = max(0, e.quota[i]-e.Lend[i])
		}
	}
}

// available is how much more of r may be charged to id: the rest of what is guaranteed to it, and what its parent can give
// within its borrowing limit.
func (l *Ledger) available(id ID, r int) int64 {
	e := &l.tree.entries[id]
	if id == Root {
		return e.quota[r] - l.used[id][r]
	}
	above := l.available(e.parent, r)
	if e.Borrow[r] != Unset {
		stored := e.quota[r] - e.guaranteed[r]
		taken := max(0, l.used[id][r]-e.guaranteed[r])
		above = min(above, stored-taken+e.Borrow[r])
	}
	return max(0, e.guaranteed[r]-l.used[id][r]) + above
}

// Available is how much of each resource id may still be charged. It can be negative after a quota was cut.
func (l *Ledger) Available(id ID) Amounts {
	var a Amounts
	for r := range a {
		a[r] = l.available(id, r)
	}
	return a
}

// Fits reports whether want may be charged to id, and if not, which resource is short.
func (l *Ledger) Fits(id ID, want Amounts) (short Resource, ok bool) {
	for r := range want {
		if want[r] > 0 && want[r] > l.available(id, r) {
			return Resource(r), false
		}
	}
	return 0, true
}

// Charge writes down that id holds a more. It does not ask whether it fits.
func (l *Ledger) Charge(id ID, a Amounts) {
	for at := id; at >= 0; at = l.tree.entries[at].parent {
		l.held[at] = l.held[at].Plus(a)
	}
	for r, n := range a {
		for at := id; at >= 0 && n > 0; at = l.tree.entries[at].parent {
			local := max(0, l.tree.entries[at].guaranteed[r]-l.used[at][r])
			l.used[at][r] += n
			n -= min(n, local)
		}
	}
}

// Release takes back what Charge wrote down.
func (l *Ledger) Release(id ID, a Amounts) {
	for at := id; at >= 0; at = l.tree.entries[at].parent {
		l.held[at] = l.held[at].Minus(a)
	}
	for r, n := range a {
		for at := id; at >= 0 && n > 0; at = l.tree.entries[at].parent {
			above := max(0, l.used[at][r]-l.tree.entries[at].guaranteed[r])
			l.used[at][r] -= n
			n = min(n, above)
		}
	}
}

// Borrows reports whether id, with want more, holds more of something than a quota over it owns. Accounts without a
// nominal quota own nothing and are not asked; where nobody has one, nobody borrows.
func (l *Ledger) Borrows(id ID, want Amounts) bool {
	for at := id; at >= 0; at = l.tree.entries[at].parent {
		e := &l.tree.entries[at]
		for r := range want {
			if e.Nominal[r] != Unset && want[r] > 0 && l.held[at][r]+want[r] > e.owns[r] {
				return true
			}
		}
	}
	return false
}

// Borrowing is Borrows for a job that is charged already: it holds have.
func (l *Ledger) Borrowing(id ID, have Amounts) bool {
	for at := id; at >= 0; at = l.tree.entries[at].parent {
		e := &l.tree.entries[at]
		for r := range have {
			if e.Nominal[r] != Unset && have[r] > 0 && l.held[at][r] > e.owns[r] {
				return true
			}
		}
	}
	return false
}

// Borrowed is the sum, over all accounts with a nominal quota and all resources, of what they hold above what they own.
// Reclaiming from a borrower lowers it; nothing that preempts may raise it.
func (l *Ledger) Borrowed() int64 {
	var sum int64
	for id := range l.tree.entries {
		e := &l.tree.entries[id]
		for r := range e.Nominal {
			if e.Nominal[r] != Unset {
				sum += max(0, l.held[id][r]-e.owns[r])
			}
		}
	}
	return sum
}
