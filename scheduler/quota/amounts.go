package quota

import (
	"fmt"
	"strings"
)

// A Resource is one kind of what a job can hold. Slurm calls them TRES, trackable resources.
type Resource int

// The resources that are counted.
const (
	GPUs Resource = iota
	Nodes
	CPUs
	Memory // MiB
	resources
)

// Resources is how many kinds there are.
const Resources = int(resources)

var resourceNames = [Resources]string{"gpu", "node", "cpu", "mem"}

func (r Resource) String() string { return resourceNames[r] }

// Amounts is how much of each resource.
type Amounts [Resources]int64

// Unset is the amount of a limit that is not set.
const Unset = -1

// None is a limit that limits nothing.
func None() Amounts { return Amounts{Unset, Unset, Unset, Unset} }

// Plus adds b to a.
func (a Amounts) Plus(b Amounts) Amounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// Minus takes b from a.
func (a Amounts) Minus(b Amounts) Amounts {
	for i := range a {
		a[i] -= b[i]
	}
	return a
}

// Times is n times a.
func (a Amounts) Times(n int64) Amounts {
	for i := range a {
		a[i] *= n
	}
	return a
}

// Over is the first resource of which a has more than limit allows; ok is false when there is none.
func (a Amounts) Over(limit Amounts) (r Resource, ok bool) {
	for i := range a {
		if limit[i] != Unset && a[i] > limit[i] {
			return Resource(i), true
		}
	}
	return 0, false
}

// String is gpu=8,node=1; what is zero or not set is left out.
func (a Amounts) String() string {
	var parts []string
	for i, n := range a {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", resourceNames[i], n))
		}
	}
	return strings.Join(parts, ",")
}

// ParseAmounts reads gpu=8,node=1 into a copy of base.
func ParseAmounts(s string, base Amounts) (Amounts, error) {
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		var n int64
		if _, err := fmt.Sscanf(value, "%d", &n); err != nil || n < 0 {
			return base, fmt.Errorf("amount %q: want RESOURCE=NUMBER, as gpu=8", part)
		}
		found := false
		for i, known := range resourceNames {
			if name == known {
				base[i], found = n, true
			}
		}
		if !found {
			return base, fmt.Errorf("amount %q: no resource %q; there are %s", part, name, strings.Join(resourceNames[:], ", "))
		}
	}
	return base, nil
}
