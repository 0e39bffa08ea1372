package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// A usage is what was used until a time, and since when the age of waiting jobs counts: what a new leader goes on from.
type usage struct {
	queue.Usage
	Accrue map[int64]int64 `json:"accrue,omitempty"` // by job, of those for which it is not when they were submitted
}

// loadRule takes in one stored record of the rules; false when the key is none of theirs.
func (s *state) loadRule(e store.Entry) (bool, error) {
	name := func(prefix string) string { return strings.TrimPrefix(e.Key, prefix) }
	switch {
	case strings.HasPrefix(e.Key, keyAccounts):
		return true, into(e, s.book.Accounts, name(keyAccounts), new(rules.Account))
	case strings.HasPrefix(e.Key, keyQOS):
		return true, into(e, s.book.QOS, name(keyQOS), new(rules.QOS))
	case strings.HasPrefix(e.Key, keyParts):
		return true, into(e, s.book.Partitions, name(keyParts), new(rules.Partition))
	case strings.HasPrefix(e.Key, keyReserved):
		return true, into(e, s.book.Reservations, name(keyReserved), new(rules.Reservation))
	case e.Key == keyPriority:
		return true, json.Unmarshal(e.Value, &s.book.Priority)
	case e.Key == keyUsage:
		return true, json.Unmarshal(e.Value, &s.usage)
	}
	return false, nil
}

// rulesAtOnce is how many records one transaction takes.
const rulesAtOnce = 100

// Rules implements api.Rules.
func (c *Coordinator) Rules(_ context.Context, whole bool) (out rules.File, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		if whole {
			out = s.book.Whole().File()
			return nil
		}
		out = s.book.File()
		return nil
	})
	return out, err
}

// SetRules implements api.Rules: a file with faults is refused whole, with all of them.
func (c *Coordinator) SetRules(ctx context.Context, by string, f rules.File) (rules.File, error) {
	l, err := c.leading()
	if err != nil {
		return rules.File{}, err
	}
	parts := split(rules.NewBook().With(f).File(), f.Priority)
	if len(parts) == 0 {
		return rules.File{}, &invalidError{"there is no record in it", "records are under priority, qos, accounts, partitions and reservations"}
	}
	for _, part := range parts {
		err := l.do(ctx, func(t *tx) error {
			// Each part is held against the whole: what it names may come with a later one.
			if err := t.soundRules(t.book.With(f)); err != nil {
				return err
			}
			t.setBook(t.book.With(part))
			t.putRules(part)
			t.record(wire.HistoryEntry{Event: "rules set", By: by, Detail: ruleNames(part)})
			return nil
		})
		if err != nil {
			return rules.File{}, err
		}
	}
	return c.Rules(ctx, false)
}

// split cuts a file into parts of which each fits into one transaction, what others need first.
func split(f rules.File, p *rules.Priority) []rules.File {
	var parts []rules.File
	part, n := rules.File{Priority: p}, 0
	if p != nil {
		n = 1
	}
	room := func() {
		if n++; n > rulesAtOnce {
			parts = append(parts, part)
			part, n = rules.File{}, 1
		}
	}
	for _, q := range f.QOS {
		room()
		part.QOS = append(part.QOS, q)
	}
	for _, a := range f.Accounts {
		room()
		part.Accounts = append(part.Accounts, a)
	}
	for _, x := range f.Partitions {
		room()
		part.Partitions = append(part.Partitions, x)
	}
	for _, r := range f.Reservations {
		room()
		part.Reservations = append(part.Reservations, r)
	}
	if n > 0 {
		parts = append(parts, part)
	}
	return parts
}

func ruleNames(f rules.File) []string {
	var out []string
	add := func(kind string, names []string) {
		if len(names) > 0 {
			out = append(out, kind+" "+strings.Join(names[:min(len(names), 50)], ","))
		}
	}
	if f.Priority != nil {
		out = append(out, "priority")
	}
	add("qos", namesOf(f.QOS, func(x rules.QOS) string { return x.Name }))
	add("accounts", namesOf(f.Accounts, func(x rules.Account) string { return x.Name }))
	add("partitions", namesOf(f.Partitions, func(x rules.Partition) string { return x.Name }))
	add("reservations", namesOf(f.Reservations, func(x rules.Reservation) string { return x.Name }))
	return out
}

func namesOf[T any](list []T, of func(T) string) []string {
	var out []string
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

// DropRule implements api.Rules.
func (c *Coordinator) DropRule(ctx context.Context, by, kind, name string) (rules.File, error) {
	l, err := c.leading()
	if err != nil {
		return rules.File{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		b := t.book.Clone()
		var there bool
		var key string
		switch kind {
		case "account":
			_, there = b.Accounts[name]
			delete(b.Accounts, name)
			key = keyAccounts
		case "qos":
			_, there = b.QOS[name]
			delete(b.QOS, name)
			key = keyQOS
		case "partition":
			_, there = b.Partitions[name]
			delete(b.Partitions, name)
			key = keyParts
		case "reservation":
			_, there = b.Reservations[name]
			delete(b.Reservations, name)
			key = keyReserved
		default:
			return &invalidError{fmt.Sprintf("%.40q is no kind of rule", kind), "kinds are account, qos, partition and reservation"}
		}
		if !there {
			return &notFoundError{kind + " " + name, "`assay " + kind + " list` shows those there are; what assay brings by itself cannot be deleted"}
		}
		if err := t.soundRules(b); err != nil {
			return err
		}
		t.setBook(b)
		t.extra = append(t.extra, store.Op{Key: key + name, Delete: true})
		t.record(wire.HistoryEntry{Event: "rules delete " + kind + " " + name, By: by})
		return nil
	})
	if err != nil {
		return rules.File{}, err
	}
	return c.Rules(ctx, false)
}

// soundRules refuses a book with faults, and one that would leave a job that goes on without its partition, QOS or account.
func (t *tx) soundRules(b rules.Book) error {
	if err := b.Check(); err != nil {
		return &invalidError{err.Error(), "nothing was changed"}
	}
	whole := b.Whole()
	lost := map[string][]int64{}
	for _, id := range sortedKeys(t.base.jobs) {
		j := t.base.jobs[id]
		if j.over() {
			continue
		}
		miss := func(there bool, kind, name string) {
			if !there {
				lost[kind+" "+name] = append(lost[kind+" "+name], id)
			}
		}
		_, a := whole.Accounts[j.Account]
		_, q := whole.QOS[j.QOS]
		for _, name := range (rules.Place{Partition: j.Partition}).Partitions() {
			_, p := whole.Partitions[name]
			miss(p, "partition", name)
		}
		miss(a, "account", j.Account)
		miss(q, "QOS", j.QOS)
	}
	for _, what := range sortedKeys(lost) {
		ids := lost[what]
		return &refusedError{fmt.Sprintf("%s would be gone, and %s of it go on or wait: %d first", what, plural(len(ids), "job"), ids[0]),
			"let them end, or cancel them; a partition in state drain takes no new ones"}
	}
	return nil
}

// setBook puts b in force.
func (t *tx) setBook(b rules.Book) { t.book, t.ruled = b, true }

func (t *tx) putRules(f rules.File) {
	if f.Priority != nil {
		t.put(keyPriority, *f.Priority)
	}
	for _, q := range f.QOS {
		t.put(keyQOS+q.Name, q)
	}
	for _, a := range f.Accounts {
		t.put(keyAccounts+a.Name, a)
	}
	for _, p := range f.Partitions {
		t.put(keyParts+p.Name, p)
	}
	for _, r := range f.Reservations {
		t.put(keyReserved+r.Name, r)
	}
}

// Accounts implements api.Rules: the accounts in their order, each with its users after it, and how they stand.
func (c *Coordinator) Accounts(_ context.Context) (out []wire.Account, err error) {
	err = c.read(func(l *lead, s *state, _ time.Time) error {
		l.outlooks.mu.RLock()
		defer l.outlooks.mu.RUnlock()
		stand := l.outlooks.standings
		for _, a := range s.book.Whole().File().Accounts {
			out = append(out, wire.Account{Account: a, Standing: stand[a.Name]})
			var users []wire.Account
			for name, st := range stand {
				user, ok := strings.CutPrefix(name, a.Name+"/")
				if !ok {
					continue
				}
				u := wire.Account{Account: rules.Account{Name: a.Name}, User: user, Standing: st}
				if i := slices.IndexFunc(a.Users, func(x rules.User) bool { return x.Name == user }); i >= 0 {
					u.Share = a.Users[i].Share
				}
				users = append(users, u)
			}
			slices.SortFunc(users, func(a, b wire.Account) int { return strings.Compare(a.User, b.User) })
			out = append(out, users...)
		}
		return nil
	})
	return out, err
}

// fleetOf is the nodes as the rules see them.
func (s *state) fleetOf() rules.Fleet {
	f := make(rules.Fleet, len(s.nodes))
	for name, n := range s.nodes {
		f[name] = len(n.Inventory.GPUs)
	}
	return f
}

// members are the users that the accounts' jobs have brought.
func (s *state) members() []rules.Member {
	known := map[rules.Member]bool{}
	for _, j := range s.jobs {
		known[rules.Member{Account: j.Account, User: j.User}] = true
	}
	for name := range s.usage.Billed {
		if account, user, ok := strings.Cut(name, "/"); ok {
			known[rules.Member{Account: account, User: user}] = true
		}
	}
	out := make([]rules.Member, 0, len(known))
	for m := range known {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b rules.Member) int { return strings.Compare(a.Account+"/"+a.User, b.Account+"/"+b.User) })
	return out
}
