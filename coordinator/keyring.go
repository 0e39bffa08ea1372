package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A keyring is the key that certificates are signed with, and those that are trusted. It is replaced whole, never changed.
type keyring struct {
	current signer
	trusted map[string]signer // by id; the current one among them
}

// with returns the ring with one more key, trusted or current.
func (r *keyring) with(k signer, current bool) *keyring {
	out := &keyring{current: r.current, trusted: map[string]signer{k.ID: k}}
	for id, t := range r.trusted {
		out.trusted[id] = t
	}
	if current || out.current.ID == "" {
		out.current = k
	}
	return out
}

// public are the trusted keys as agents and people get them.
func (r *keyring) public() map[string][]byte {
	out := map[string][]byte{}
	for id, k := range r.trusted {
		out[id] = k.Pub
	}
	return out
}

// loadKey takes one stored key into the ring: the youngest signs.
func (l *lead) loadKey(k signer) {
	r := l.ring.Load()
	l.ring.Store(r.with(k, r.current.ID == "" || k.Since.After(r.current.Since)))
}

// Keys implements api.Keys.
func (c *Coordinator) Keys(_ context.Context) (out wire.Keys, err error) {
	err = c.read(func(l *lead, _ *state, _ time.Time) error {
		r := l.ring.Load()
		out = wire.Keys{Current: r.current.ID, Since: r.current.Since, Trusted: r.public()}
		return nil
	})
	return out, err
}

// RotateKey implements api.Keys: from now on another key signs, and the one before is still trusted. It is refused while a
// certificate rests on one still older, which would then be nobody's.
func (c *Coordinator) RotateKey(ctx context.Context, by, reason string) (wire.Keys, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Keys{}, err
	}
	id, pub, priv, err := authority.NewSigningKey()
	if err != nil {
		return wire.Keys{}, err
	}
	l.rotating.Lock()
	defer l.rotating.Unlock()
	before := l.ring.Load()
	next := signer{ID: id, Pub: pub, Priv: priv}
	after := &keyring{trusted: map[string]signer{}}
	err = l.do(ctx, func(t *tx) error {
		next.Since = t.now
		for name, n := range t.base.nodes {
			if k := n.Certificate; k != nil && k.KeyID != before.current.ID {
				return &refusedError{fmt.Sprintf("certificate %d of %s is signed with key %s, which would no longer be trusted", k.Serial, name, k.KeyID),
					"it is renewed by " + k.Expires.Format(time.RFC3339) + "; rotate after that"}
			}
		}
		after = after.with(before.current, false).with(next, true)
		for old := range before.trusted {
			if old != before.current.ID {
				t.extra = append(t.extra, store.Op{Key: keySigning + old, Delete: true})
			}
		}
		t.put(keySigning+id, next)
		for name := range t.base.nodes {
			t.woken[name] = true
		}
		t.record(wire.HistoryEntry{Event: fmt.Sprintf("key_rotated from=%s to=%s reason=%s", before.current.ID, id, quote(reason)), By: by})
		l.ring.Store(before.with(next, false)) // agents may be told of the new key before anything is signed with it
		return nil
	})
	if err != nil {
		l.ring.Store(before)
		return wire.Keys{}, err
	}
	l.ring.Store(after)
	return c.Keys(ctx)
}
