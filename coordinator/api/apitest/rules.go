package apitest

import (
	"context"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/queue"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// Rules implements api.Rules.
func (p *Plane) Rules(_ context.Context, whole bool) (rules.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := rules.NewBook().With(p.rules)
	if whole {
		b = b.Whole()
	}
	return b.File(), nil
}

// SetRules implements api.Rules. It refuses what the real one refuses.
func (p *Plane) SetRules(ctx context.Context, _ string, f rules.File) (rules.File, error) {
	p.mu.Lock()
	b := rules.NewBook().With(p.rules).With(f)
	if err := b.Check(); err != nil {
		p.mu.Unlock()
		return rules.File{}, api.Errorf(422, "%v", err).With("nothing was changed")
	}
	p.rules = b.File()
	p.mu.Unlock()
	return p.Rules(ctx, false)
}

// DropRule implements api.Rules.
func (p *Plane) DropRule(ctx context.Context, _, kind, name string) (rules.File, error) {
	p.mu.Lock()
	b := rules.NewBook().With(p.rules)
	before := len(b.Accounts) + len(b.QOS) + len(b.Partitions) + len(b.Reservations)
	switch kind {
	case "account":
		delete(b.Accounts, name)
	case "qos":
		delete(b.QOS, name)
	case "partition":
		delete(b.Partitions, name)
	case "reservation":
		delete(b.Reservations, name)
	}
	if len(b.Accounts)+len(b.QOS)+len(b.Partitions)+len(b.Reservations) == before {
		p.mu.Unlock()
		return rules.File{}, api.Errorf(404, "%s %s: not found", kind, name)
	}
	p.rules = b.File()
	p.mu.Unlock()
	return p.Rules(ctx, false)
}

// Accounts implements api.Rules. Each user of each account holds one node of eight GPUs.
func (p *Plane) Accounts(_ context.Context) ([]wire.Account, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []wire.Account
	for _, a := range rules.NewBook().With(p.rules).Whole().File().Accounts {
		n := len(a.Users)
		stands := func(n int) queue.Standing {
			return queue.Standing{Held: map[string]int64{"gpu": 8 * int64(n), "node": int64(n)}, Running: n, Queued: n + 1, Billed: 3600 * 8 * float64(n), Fair: 0.5}
		}
		out = append(out, wire.Account{Account: a, Standing: stands(n)})
		for _, u := range a.Users {
			out = append(out, wire.Account{Account: rules.Account{Name: a.Name, Share: u.Share}, User: u.Name, Standing: stands(1)})
		}
	}
	return out, nil
}
