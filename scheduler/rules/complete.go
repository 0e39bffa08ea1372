package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/scheduler/queue"
)

// A Place is under which rules a job runs. It may name several partitions, with commas between them.
type Place struct{ Partition, Account, QOS string }

// Partitions are the partitions named, each once.
func (p Place) Partitions() []string {
	var out []string
	for name := range strings.SplitSeq(p.Partition, ",") {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Complete fills in what a user's job did not name, and says why it may not run under what it did: no reason when it may.
// The book is a whole one.
func (b Book) Complete(user string, p Place) (Place, queue.Reason) {
	no := func(code queue.Code, parts ...string) (Place, queue.Reason) {
		return p, queue.Reason{Code: code, Text: strings.Join(parts, "")}
	}
	if p.Partition == "" {
		p.Partition = b.defaultPartition()
	}
	for _, name := range p.Partitions() {
		if _, ok := b.Partitions[name]; !ok {
			return no(queue.BadConstraints, "there is no partition ", clip(name), "; there are ", list(b.Partitions))
		}
	}
	if p.Account == "" {
		if p.Account = b.accountOf(user); p.Account == "" {
			return no(queue.InvalidAccount, user, " is named in several accounts, or in none, and none is the default; name one of ", list(b.Accounts))
		}
	}
	a, ok := b.Accounts[p.Account]
	if !ok || a.Name == "root" {
		return no(queue.InvalidAccount, "there is no account ", clip(p.Account), "; there are ", list(b.Accounts))
	}
	if len(a.Users) > 0 && !slices.ContainsFunc(a.Users, func(u User) bool { return u.Name == user }) {
		return no(queue.InvalidAccount, user, " may not use account ", a.Name, ": it names its users")
	}
	allowed := b.qosOf(a)
	if p.QOS == "" {
		p.QOS = DefaultQOS
		if len(allowed) > 0 && !slices.Contains(allowed, DefaultQOS) {
			p.QOS = allowed[0]
		}
	}
	if _, ok := b.QOS[p.QOS]; !ok {
		return no(queue.InvalidQOS, "there is no QOS ", clip(p.QOS), "; there are ", list(b.QOS))
	}
	if len(allowed) > 0 && !slices.Contains(allowed, p.QOS) {
		return no(queue.InvalidQOS, "account ", a.Name, " may not use QOS ", p.QOS, "; it may use ", strings.Join(allowed, ", "))
	}
	return p, queue.Reason{}
}

func (b *Book) defaultPartition() string {
	for _, p := range sorted(b.Partitions) {
		if p.Default || len(b.Partitions) == 1 {
			return p.Name
		}
	}
	return DefaultPartition
}

// accountOf is the account of one who names none: the only one that names him, else the default; "" when that says nothing.
func (b *Book) accountOf(user string) string {
	var named []string
	fallback := ""
	for _, a := range sorted(b.Accounts) {
		if slices.ContainsFunc(a.Users, func(u User) bool { return u.Name == user }) {
			named = append(named, a.Name)
		}
		if a.Default {
			fallback = a.Name
		}
	}
	if len(named) == 1 || len(named) > 1 && slices.Contains(named, fallback) {
		if len(named) == 1 {
			return named[0]
		}
		return fallback
	}
	if len(named) > 1 {
		return ""
	}
	return fallback
}

// qosOf is what QOS an account's jobs may have, as it or the first above it says; nil: any.
func (b *Book) qosOf(a Account) []string {
	for range len(b.Accounts) {
		if len(a.QOS) > 0 || a.Name == "root" {
			return a.QOS
		}
		up, ok := b.Accounts[a.Parent]
		if !ok {
			up = b.Accounts["root"]
			up.Name = "root"
		}
		a = up
	}
	return a.QOS
}

// list names what there is, the first twenty.
func list[T any](m map[string]T) string {
	names := slices.Sorted(maps.Keys(m))
	names = slices.DeleteFunc(names, func(n string) bool { return n == "root" })
	more := ""
	if len(names) > 20 {
		names, more = names[:20], " and others"
	}
	return strings.Join(names, ", ") + more
}

// clip keeps what somebody typed short, and on one line.
func clip(s string) string {
	q := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if len(q) > 60 {
		q = q[:60] + "…"
	}
	return `"` + q + `"`
}
