package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-gpu/assay/checks/hostlist"
)

// The records that hold where a site has made none of their kind.
const (
	DefaultPartition = "batch"
	DefaultQOS       = "normal"
	DefaultAccount   = "all"
)

// A File is records as a site writes them down together.
type File struct {
	Priority     *Priority     `json:"priority,omitempty" yaml:"priority"`
	QOS          []QOS         `json:"qos,omitempty" yaml:"qos"`
	Accounts     []Account     `json:"accounts,omitempty" yaml:"accounts"`
	Partitions   []Partition   `json:"partitions,omitempty" yaml:"partitions"`
	Reservations []Reservation `json:"reservations,omitempty" yaml:"reservations"`
}

// A Book is all records of a site, by name.
type Book struct {
	Priority     Priority
	QOS          map[string]QOS
	Accounts     map[string]Account
	Partitions   map[string]Partition
	Reservations map[string]Reservation
}

// NewBook is an empty book.
func NewBook() Book {
	return Book{QOS: map[string]QOS{}, Accounts: map[string]Account{}, Partitions: map[string]Partition{}, Reservations: map[string]Reservation{}}
}

// Clone is a copy that can be written to.
func (b Book) Clone() Book {
	b.QOS, b.Accounts, b.Partitions, b.Reservations = maps.Clone(b.QOS), maps.Clone(b.Accounts), maps.Clone(b.Partitions), maps.Clone(b.Reservations)
	return b
}

// With is the book with the records of f in place of those of the same names.
func (b Book) With(f File) Book {
	b = b.Clone()
	if f.Priority != nil {
		b.Priority = *f.Priority
	}
	for _, q := range f.QOS {
		b.QOS[q.Name] = q
	}
	for _, a := range f.Accounts {
		b.Accounts[a.Name] = a
	}
	for _, p := range f.Partitions {
		b.Partitions[p.Name] = p
	}
	for _, r := range f.Reservations {
		b.Reservations[r.Name] = r
	}
	return b
}

// File is the book as a site would write it, sorted by name, accounts below their parents.
func (b Book) File() File {
	f := File{Priority: &b.Priority, QOS: sorted(b.QOS), Partitions: sorted(b.Partitions), Reservations: sorted(b.Reservations)}
	placed := map[string]bool{}
	rest := sorted(b.Accounts)
	for len(rest) > 0 {
		var later []Account
		for _, a := range rest {
			if _, ours := b.Accounts[a.Parent]; ours && !placed[a.Parent] {
				later = append(later, a)
				continue
			}
			placed[a.Name] = true
			f.Accounts = append(f.Accounts, a)
		}
		if len(later) == len(rest) { // a ring; whoever reads it is told
			return File{Priority: f.Priority, QOS: f.QOS, Partitions: f.Partitions, Reservations: f.Reservations, Accounts: sorted(b.Accounts)}
		}
		rest = later
	}
	return f
}

func sorted[T any](m map[string]T) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// Whole is the book with the partition, QOS and account that hold where the site has made none. A site that makes
// partitions or accounts of its own has only those.
func (b Book) Whole() Book {
	b = b.Clone()
	if len(b.Partitions) == 0 {
		b.Partitions[DefaultPartition] = Partition{Name: DefaultPartition, Default: true}
	}
	if _, ok := b.QOS[DefaultQOS]; !ok {
		b.QOS[DefaultQOS] = QOS{Name: DefaultQOS}
	}
	if len(b.Accounts) == 0 || len(b.Accounts) == 1 && b.Accounts["root"].Name != "" {
		b.Accounts[DefaultAccount] = Account{Name: DefaultAccount, Default: true}
	}
	return b
}

// Check finds every fault of the book, each with the record that has it.
func (b Book) Check() error {
	_, _, err := b.Whole().Build(Fleet{"node": 8}, nil)
	return err
}

// faults are those that a record has by itself.
func (b *Book) faults() error {
	var all []error
	of := func(kind, name string) func(string, ...any) {
		if !ValidName(name) {
			all = append(all, fmt.Errorf("%s %.80q: want letters, digits, - _ and . for a name, at most %d", kind, name, MaxName))
		}
		return func(format string, args ...any) {
			all = append(all, fmt.Errorf("%s %s: %w", kind, name, fmt.Errorf(format, args...)))
		}
	}
	b.Priority.faults(func(format string, args ...any) { all = append(all, fmt.Errorf("priority: "+format, args...)) })
	for _, q := range sorted(b.QOS) {
		bad := of("QOS", q.Name)
		q.Limits.faults(bad)
		if q.UsageFactor != nil && !(*q.UsageFactor >= 0) {
			bad("usage_factor %v: want 0 or more", *q.UsageFactor)
		}
		if q.Priority < 0 {
			bad("priority %d: want 0 or more", q.Priority)
		}
	}
	defaults := 0
	for _, p := range sorted(b.Partitions) {
		p.faults(of("partition", p.Name))
		defaults += btoi(p.Default)
		for _, name := range slices.Concat(p.AllowAccts, p.DenyAccts) {
			if _, ok := b.Accounts[name]; !ok {
				of("partition", p.Name)("names account %s, which there is not", name)
			}
		}
	}
	if defaults > 1 {
		all = append(all, fmt.Errorf("%d partitions are the default: at most one can be", defaults))
	}
	defaults = 0
	for _, a := range sorted(b.Accounts) {
		bad := of("account", a.Name)
		a.faults(bad)
		defaults += btoi(a.Default)
		for _, q := range a.QOS {
			if _, ok := b.QOS[q]; !ok {
				bad("names QOS %s, which there is not", q)
			}
		}
	}
	if defaults > 1 {
		all = append(all, fmt.Errorf("%d accounts are the default: at most one can be", defaults))
	}
	for _, r := range sorted(b.Reservations) {
		bad := of("reservation", r.Name)
		r.faults(bad)
		for _, name := range r.Accounts {
			if _, ok := b.Accounts[name]; !ok {
				bad("names account %s, which there is not", name)
			}
		}
	}
	return errors.Join(all...)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (a *Account) faults(bad func(string, ...any)) {
	a.Limits.faults(bad)
	a.Limits.onlyQOS(bad)
	for name, x := range map[string]Amounts{"nominal": a.Nominal, "borrow": a.Borrow, "lend": a.Lend} {
		if _, err := x.limit(); err != nil {
			bad("%s: %v", name, err)
		}
	}
	if a.Nominal == "" && (a.Borrow != "" || a.Lend != "") {
		bad("borrow and lend go with nominal: who owns nothing draws on its parent's")
	}
	if a.Name == "root" && (a.Parent != "" || len(a.Users) > 0) {
		bad("it is the root: it has no parent, and nobody is charged to it")
	}
	if a.Priority < 0 {
		bad("priority %d: want 0 or more", a.Priority)
	}
}

func (p *Partition) faults(bad func(string, ...any)) {
	if _, err := nodeNames(p.Nodes); err != nil {
		bad("nodes: %v", err)
	}
	if _, ok := partitionStates[p.State]; !ok {
		bad("state %q: want up, down, drain or inactive", p.State)
	}
	if _, ok := billingModes[p.BillingMode]; !ok {
		bad("billing_mode %q: want sum, max or max_gres", p.BillingMode)
	}
	if _, err := p.Billing.values(); err != nil {
		bad("billing: %v", err)
	}
	if p.MinNodes < 0 || p.MaxNodes < 0 || p.Tier < 0 || p.JobFactor < 0 || p.MaxTime < 0 || p.DefaultTime < 0 {
		bad("a number below nothing")
	}
	if p.MaxTime > 0 && p.DefaultTime > p.MaxTime {
		bad("default_time %s is above max_time %s", p.DefaultTime, p.MaxTime)
	}
}

func (p *Priority) faults(bad func(string, ...any)) {
	for name, w := range map[string]*float64{"age": p.Age, "fair_share": p.FairShare, "job_size": p.JobSize, "partition": p.Partition, "qos": p.QOS, "assoc": p.Assoc} {
		if w != nil && !(*w >= 0 && *w < 1<<32) {
			bad("%s %v: want 0 to 4294967295", name, *w)
		}
	}
	if _, err := p.TRES.values(); err != nil {
		bad("tres: %v", err)
	}
	p.planFaults(bad)
}

// nodeNames are those of a hostlist; nil for all nodes of the fleet.
func nodeNames(list string) ([]string, error) {
	if list == "" || list == "ALL" || list == "all" {
		return nil, nil
	}
	return hostlist.Expand(list)
}
