package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	// MinLease is the shortest lease to campaign with. Stock etcd gives no lease under 2 s.
	MinLease = 3 * time.Second
	// leaseSlack is how much shorter than asked the lease in etcd is: etcd looks for expired leases twice a second and
	// then commits their end, and whoever leads next needs that time too.
	leaseSlack = time.Second
	// markersKept is how many terms back commit markers are kept.
	markersKept = 16
)

// Campaign blocks until this process leads, then gives the term it leads for. name and url are what [Store.Leader] then
// tells others. A leader that dies is replaced within ttl (at least MinLease, in whole seconds); one that lives keeps
// the lease alive until [Term.Resign].
func (s *Store) Campaign(ctx context.Context, name, url string, ttl time.Duration) (*Term, error) {
	if ttl < MinLease {
		return nil, fmt.Errorf("campaign: lease of %v is shorter than %v", ttl, MinLease)
	}
	c := candidate{s: s, name: name, url: url, seconds: int64((ttl - leaseSlack) / time.Second)}
	for {
		t, err := c.try(ctx)
		if t != nil {
			return t, nil
		}
		if ctx.Err() != nil {
			c.withdraw()
			return nil, fmt.Errorf("campaign: %w", context.Cause(ctx))
		}
		if err != nil {
			s.log.Warn("campaign interrupted", "err", err)
			sleep(ctx, 250*time.Millisecond)
		}
	}
}

// A candidate tries to become leader. It keeps one lease over several tries, so that it knows its own leader key again
// when the answer to the transaction that put it was lost.
type candidate struct {
	s         *Store
	name, url string
	seconds   int64

	lease   int64
	expires time.Time // boot clock: the lease lives at least until then
}

// try waits until nobody else leads and then tries once. It gives no term and no error when another was faster.
func (c *candidate) try(ctx context.Context) (*Term, error) {
	s := c.s
	leader, err := s.Get(ctx, leaderKey)
	if err != nil {
		return nil, err
	}
	last, err := s.Get(ctx, termKey)
	if err != nil {
		return nil, err
	}
	if leader.ModRevision != 0 && (c.lease == 0 || leader.Lease != c.lease) {
		c.withdraw()
		s.waitChange(ctx, leaderKey, leader)
		return nil, nil
	}
	if leader.ModRevision != 0 { // an earlier try went through, only its answer was lost
		return c.won(leader)
	}
	number := int64(1)
	if last.ModRevision != 0 {
		if number, err = strconv.ParseInt(string(last.Value), 10, 64); err != nil {
			return nil, fmt.Errorf("term key: %w", err)
		}
		number++
	}
	if err := c.renew(ctx); err != nil {
		return nil, err
	}
	value, err := json.Marshal(Leader{c.name, c.url, number})
	if err != nil {
		return nil, err
	}
	cctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.kv.Txn(cctx, Txn{
		If: []Compare{{s.prefix + leaderKey, 0}, {s.prefix + termKey, last.ModRevision}},
		Then: []Call{
			{Key: s.prefix + leaderKey, Value: value, Lease: c.lease},
			{Key: s.prefix + termKey, Value: strconv.AppendInt(nil, number, 10)},
			{Key: s.prefix + commitKey, Until: s.marker(number - markersKept)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("put leader key: %w", causeOf(cctx, err))
	}
	if !r.Succeeded {
		return nil, nil
	}
	return c.won(Entry{Value: value, ModRevision: r.Revision, Lease: c.lease})
}

// renew sees that the candidate holds a lease with at least half its time left.
func (c *candidate) renew(ctx context.Context) error {
	half := time.Duration(c.seconds) * time.Second / 2
	if c.lease != 0 && c.expires.Sub(c.s.boot()) > half {
		return nil
	}
	c.withdraw()
	sent := c.s.boot()
	ctx, cancel := c.s.call(ctx)
	defer cancel()
	lease, granted, err := c.s.kv.Grant(ctx, c.seconds)
	if err != nil {
		return fmt.Errorf("grant lease: %w", causeOf(ctx, err))
	}
	c.lease, c.expires = lease, sent.Add(time.Duration(granted)*time.Second)
	return nil
}

// withdraw gives the candidate's lease back. If that does not work the lease runs out.
func (c *candidate) withdraw() {
	if c.lease == 0 {
		return
	}
	ctx, cancel := c.s.call(context.Background())
	defer cancel()
	if err := c.s.kv.Revoke(ctx, c.lease); err != nil {
		c.s.log.Info("lease left to run out", "lease", c.lease, "err", err)
	}
	c.lease = 0
}

func (c *candidate) won(leader Entry) (*Term, error) {
	l, err := leaderOf(leader)
	if err != nil {
		return nil, err
	}
	t := newTerm(c.s, l, leader, time.Duration(c.seconds)*time.Second, c.expires)
	if !t.Valid() {
		return nil, errors.New("the lease ran out before the election was known to be won")
	}
	c.lease = 0 // the term's now
	return t, nil
}

// Depose ends the term of whoever leads, at once. It is for a process that knows the leader dead, because it holds the
// lock on the data directory of the etcd that only the leader's own process served; nobody else may call it.
func (s *Store) Depose(ctx context.Context) error {
	e, err := s.Get(ctx, leaderKey)
	if err != nil || e.ModRevision == 0 {
		return err
	}
	ctx, cancel := s.call(ctx)
	defer cancel()
	if err := s.kv.Revoke(ctx, e.Lease); err != nil {
		return fmt.Errorf("depose %s: %w", e.Value, causeOf(ctx, err))
	}
	return nil
}

// marker is the key of a term's commit marker. Numbers are padded so that older terms sort first.
func (s *Store) marker(term int64) string {
	return fmt.Sprintf("%s%s%016d", s.prefix, commitKey, max(term, 0))
}
