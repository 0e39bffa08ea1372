// Package control is the agent's connection to the control plane: one long-lived stream of desired state, heartbeats,
// reports from the spool, permits, and the results of effects, all over HTTP/2 with mutual TLS.
//
// A follower answers 421 with its leader's URL, which is followed at once. After any other failure the next try waits a
// random time up to a bound that doubles, so that a fleet does not come back all at the same moment.
package control

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// An Agent is what the control plane's wishes are for.
type Agent interface {
	Fence(ctx context.Context) (term int64, version uint64, err error)
	Desire(ctx context.Context, d wire.Desired) error // durable when it returns nil
	Heard()
	Heartbeat(ctx context.Context) (wire.Heartbeat, error)
	HeartbeatEvery() time.Duration
}

// Results are how effects went, until the control plane has been told.
type Results interface {
	NextResult(ctx context.Context) (wire.EffectResult, error)
	ResultSent(id string)
}

// Reports are the reports to send, oldest first.
type Reports interface {
	Ready() <-chan struct{}
	Peek() (r checks.Report, place uint64, ok bool)
	Done(place uint64)
}

// Gangs are the launches under way on this node.
type Gangs interface {
	NextStatus(ctx context.Context) (wire.GangStatus, error)
	StatusSent(s wire.GangStatus)
	Repeat() // whoever answers from now on may not have heard what was told
}

// A Config is what a Client is made of.
type Config struct {
	URLs    []string                  // of the control plane; any of them may be a follower
	Learned func(urls []string) error // keeps the URLs over a restart when a leader names others; nil: they are kept in memory only
	TLS     *tls.Config               // with the node's certificate and the authority
	Log     *slog.Logger
	Jitter  func(most time.Duration) time.Duration // nil: evenly random between 0 and most
	MaxWait time.Duration                          // bound on the wait between tries; 0: 15 s
}

// A Client talks to the control plane. Permit may be called from any goroutine while Run runs.
type Client struct {
	cfg       Config
	http      *http.Client
	transport *http.Transport
	connected atomic.Bool
	last      wire.Heartbeat // the last one made; the heartbeat goroutine's own

	mu     sync.Mutex
	urls   []string      // of all control hosts
	leader string        // the URL that requests go to
	next   int           // the URL to try when that fails
	back   chan struct{} // closed when the stream stands again: who waits for the control plane need wait no longer
}

// Dead-peer detection: a connection that has been silent for pingAfter is pinged, and dropped when no answer comes.
const (
	pingAfter   = 15 * time.Second
	pingTimeout = 5 * time.Second
)

// answerTimeout bounds one request that is no stream and no permit.
const answerTimeout = 15 * time.Second

// New returns a client. It connects to nothing yet.
func New(cfg Config) (*Client, error) {
	if len(cfg.URLs) == 0 {
		return nil, errors.New("control plane: no URL to connect to")
	}
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = 15 * time.Second
	}
	if cfg.Jitter == nil {
		cfg.Jitter = fullJitter
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext: dialer.DialContext, ResponseHeaderTimeout: 20 * time.Second,
		TLSClientConfig: cfg.TLS, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 2,
		IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	noFollow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{cfg: cfg, transport: t, http: &http.Client{Transport: t, CheckRedirect: noFollow}, urls: slices.Clone(cfg.URLs), leader: cfg.URLs[0], back: make(chan struct{})}, nil
}

// Connected reports whether the stream stands.
func (c *Client) Connected() bool { return c.connected.Load() }

// Run keeps the connection until ctx ends, then says that the agent stops. gangs is nil where none are run.
func (c *Client) Run(ctx context.Context, a Agent, reports Reports, results Results, gangs Gangs) {
	var wg sync.WaitGroup
	wg.Go(func() { c.streams(ctx, a, gangs) })
	wg.Go(func() { c.heartbeats(ctx, a) })
	wg.Go(func() { c.upload(ctx, a, reports) })
	wg.Go(func() { c.results(ctx, results) })
	if gangs != nil {
		wg.Go(func() { c.gangs(ctx, gangs) })
	}
	wg.Wait()
	c.transport.CloseIdleConnections()
}

// backoff is the wait between tries: full jitter under a bound that doubles.
type backoff struct {
	c    *Client
	most time.Duration
	back <-chan struct{} // closed when the stream has come to stand since the tries began
}

const firstWait = 250 * time.Millisecond

func (c *Client) backoff() *backoff { return &backoff{c: c, back: c.returned()} }

func (b *backoff) reset() { b.most, b.back = 0, b.c.returned() }

// wait sleeps, at most until the control plane is back, and reports whether ctx is still good. A report of a fault must not
// sit out what an outage has made of its wait; that the streams of a fleet do not come back all at once spreads these as well.
func (b *backoff) wait(ctx context.Context) bool {
	if b.most == 0 {
		b.most = firstWait
	} else {
		b.most = min(2*b.most, b.c.cfg.MaxWait)
	}
	t := time.NewTimer(b.c.cfg.Jitter(b.most))
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.back:
		b.reset()
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// returned is closed when the stream comes to stand from now on.
func (c *Client) returned() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.back
}

// stands lets all go on who wait for the control plane.
func (c *Client) stands() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.back)
	c.back = make(chan struct{})
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
