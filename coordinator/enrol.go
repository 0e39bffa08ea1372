package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Lifetimes of identities, and the default of a token.
const (
	nodeIdentityTTL     = 5 * 365 * 24 * time.Hour
	operatorIdentityTTL = 30 * 24 * time.Hour
	tokenTTL            = time.Hour
	tokenTTLMost        = 7 * 24 * time.Hour
)

// Tokens implements api.Enroller: one one-time token a node. Only hashes are kept.
func (c *Coordinator) Tokens(ctx context.Context, by string, ask wire.EnrolAsk) ([]wire.EnrolToken, error) {
	l, err := c.leading()
	if err != nil {
		return nil, err
	}
	ttl, err := lifetime(ask.TTL, tokenTTL, tokenTTLMost)
	if err != nil {
		return nil, err
	}
	if len(ask.Nodes) == 0 {
		return nil, &invalidError{"no node named", "name nodes as a hostlist, such as gpu[001-016]"}
	}
	var out []wire.EnrolToken
	for _, node := range ask.Nodes {
		if !authority.ValidName(node) {
			return nil, &invalidError{"node " + quote(node) + ": not a node's name", "letters, digits, dot, dash and underscore, 63 bytes at most"}
		}
	}
	// One transaction a node keeps any number of nodes within etcd's limits.
	for _, node := range ask.Nodes {
		var token wire.EnrolToken
		err := l.do(ctx, func(t *tx) error {
			text, record, err := l.auth.NewToken(c.cfg.urls(), node, t.now, ttl)
			if err != nil {
				return err
			}
			record.Adopt, record.Leaf, record.By = ask.Adopt, ask.Leaf, by
			t.keepToken(record)
			t.record(wire.HistoryEntry{Node: node, Event: "token", By: by})
			token = wire.EnrolToken{Node: node, Token: text, Expires: record.Expires}
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, token)
	}
	return out, nil
}

// Enroll implements api.Enroller: a token for an identity. The token is spent in the transaction that enrols the node.
func (c *Coordinator) Enroll(ctx context.Context, e wire.Enroll) (wire.Enrolled, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Enrolled{}, err
	}
	cert, err := l.auth.SignNode(e.CSR, e.Node, nodeIdentityTTL)
	if err != nil {
		return wire.Enrolled{}, err
	}
	leaf := l.slurm.leaf(e.Node)
	err = l.do(ctx, func(t *tx) error {
		sum := sha256.Sum256([]byte(e.Secret))
		hash := hex.EncodeToString(sum[:])
		r, ok := t.base.tokens[hash]
		if !ok || r.Node != e.Node {
			return &authority.TokenError{Why: "not known, used before, or expired"}
		}
		if err := authority.Check(r, e.Secret, t.now); err != nil {
			return err
		}
		t.dropToken(hash)
		if r.Leaf != "" {
			leaf = r.Leaf
		}
		return t.apply(e.Node, lifecycle.Enrol{At: lifecycle.At{Time: t.now}, Adopt: r.Adopt, Leaf: leaf, By: r.By}, r.By)
	})
	if err != nil {
		return wire.Enrolled{}, err
	}
	return wire.Enrolled{Certificate: cert, CA: l.auth.CertPEM(), URLs: c.cfg.urls()}, nil
}

// IssueOperator implements api.Enroller.
func (c *Coordinator) IssueOperator(ctx context.Context, by string, ask wire.OperatorAsk) (wire.Enrolled, error) {
	l, err := c.leading()
	if err != nil {
		return wire.Enrolled{}, err
	}
	ttl, err := lifetime(ask.TTL, operatorIdentityTTL, 365*24*time.Hour)
	if err != nil {
		return wire.Enrolled{}, err
	}
	cert, err := l.auth.SignOperator(ask.CSR, ask.Name, authority.Role(ask.Role), ttl)
	if err != nil {
		return wire.Enrolled{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		t.record(wire.HistoryEntry{Event: "operator name=" + ask.Name + " role=" + ask.Role + " ttl=" + ttl.String(), By: by})
		return nil
	})
	return wire.Enrolled{Certificate: cert, CA: l.auth.CertPEM(), URLs: c.cfg.urls()}, err
}

func lifetime(text string, otherwise, most time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		return 0, &invalidError{"lifetime " + quote(text) + ": want a duration above 0 and up to " + most.String(), "write it as 30m or 24h"}
	}
	return d, nil
}

func (t *tx) keepToken(r authority.TokenRecord) {
	t.put(keyTokens+r.SecretHash, r)
	t.tokens[r.SecretHash] = &r
}

func (t *tx) dropToken(hash string) {
	t.extra = append(t.extra, store.Op{Key: keyTokens + hash, Delete: true})
	t.tokens[hash] = nil
}
