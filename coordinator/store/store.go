// Package store keeps the control plane's state in etcd: keys, fenced transactions, leases and watches. It knows no
// domain type, and it is the only package that imports clientv3.
//
// One process leads at a time. [Store.Campaign] blocks until this one does and gives a [Term]; every write goes through
// [Term.Commit], one transaction that etcd applies only while the leader key is as this term left it. So a leader that
// slept through its lease can write nothing, and it can know without asking: [Term.Valid] compares the boot clock with
// the time the lease was last renewed.
//
// Keys are relative to [Config.Prefix] everywhere. Three of them are the store's own: leader (who leads), term (the last
// term's number) and commit/ (one marker per term, by which an unclear commit is settled).
package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Defaults of [Config].
const (
	DefaultPrefix      = "/assay/v1/"
	DefaultDialTimeout = 5 * time.Second
	DefaultCallTimeout = 2 * time.Second
)

// Config says which etcd to use and how.
type Config struct {
	Endpoints   []string         // client URLs: http, https or unix
	TLS         *tls.Config      // for https endpoints
	Prefix      string           // before every key, ending in a slash; default DefaultPrefix
	DialTimeout time.Duration    // for the first connection in Open; default DefaultDialTimeout
	CallTimeout time.Duration    // for each call to etcd; default DefaultCallTimeout
	Wrap        func(KV) KV      // if set, the calls go through it: fault injection in tests
	Logger      *slog.Logger     // default slog.Default
	Boot        func() time.Time // boot clock, for tests; default CLOCK_BOOTTIME
}

// A Store is a connection to etcd. It may be used by several goroutines at once.
type Store struct {
	prefix      string
	callTimeout time.Duration
	client      *clientv3.Client
	kv          KV
	log         *slog.Logger
	boot        func() time.Time
	closing     sync.Once
	closed      chan struct{} // ends the terms
}

// Open connects to etcd and makes one linearizable read, so that a wrong address, a wrong certificate or a cluster
// without a quorum is an error here and not later.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("etcd: no endpoint given")
	}
	s := &Store{prefix: cfg.Prefix, callTimeout: cfg.CallTimeout, log: cfg.Logger, boot: cfg.Boot, closed: make(chan struct{})}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if !strings.HasSuffix(s.prefix, "/") {
		return nil, fmt.Errorf("etcd: key prefix %q does not end in a slash", s.prefix)
	}
	if s.callTimeout == 0 {
		s.callTimeout = DefaultCallTimeout
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.boot == nil {
		s.boot = bootTime
	}
	dial := cfg.DialTimeout
	if dial == 0 {
		dial = DefaultDialTimeout
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            cfg.Endpoints,
		TLS:                  cfg.TLS,
		DialTimeout:          dial,
		DialKeepAliveTime:    10 * time.Second, // etcd refuses clients that ping more often than every 5 s
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(), // what matters comes back as an error
	})
	if err != nil {
		return nil, fmt.Errorf("etcd %s: %w", strings.Join(cfg.Endpoints, ","), err)
	}
	s.client, s.kv = client, etcdKV{client}
	if cfg.Wrap != nil {
		s.kv = cfg.Wrap(s.kv)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dial, fmt.Errorf("no answer within %v", dial))
	defer cancel()
	if _, err := s.kv.Range(ctx, Query{Key: s.prefix + leaderKey}); err != nil {
		client.Close()
		return nil, &UnreachableError{cfg.Endpoints, causeOf(ctx, err)}
	}
	return s, nil
}

// Close drops the connection and ends the term held over it. It does not give the lease back: call [Term.Resign] first,
// so that another can lead at once.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return s.client.Close()
}

// call bounds one call to etcd.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.callTimeout, fmt.Errorf("etcd did not answer within %v", s.callTimeout))
}

// causeOf gives the reason the context ended, if it did, in place of the error it led to.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
