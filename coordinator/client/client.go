// Package client calls the control plane's API as an operator: over the control host's unix socket, or over TLS with a
// client certificate from anywhere.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// DefaultSocket is where assayd listens for operators of its own host.
const DefaultSocket = "/run/assay/assayd.sock"

const (
	maxAnswer = 256 << 20 // bytes; the whole of a large fleet fits
	pageSize  = 2000      // nodes or certificates in one answer
	maxHops   = 3         // redirections to a leader; an election in between may need more than one
)

// A Client calls one control plane. It is safe for use by several goroutines at once.
type Client struct {
	http *http.Client
	base atomic.Pointer[string] // the leader's URL, as far as known
	sock string                 // the socket's path; empty over TLS
	home string                 // the URL that was named: a leader that it sent us to may be gone
}

// Unix calls the assayd of this host over its socket.
func Unix(path string) *Client {
	d := net.Dialer{Timeout: 5 * time.Second}
	c := &Client{sock: path, http: &http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", path) },
		IdleConnTimeout: time.Minute,
	}}}
	c.setBase("http://assayd")
	return c
}

// TLS calls the assayd at base, an https URL. The configuration comes from authority.ClientTLS. A follower's answer
// sends the client on to the leader.
func TLS(base string, cfg *tls.Config) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server %q: want an https URL, as https://control1:7420", base)
	}
	c := &Client{http: &http.Client{
		Transport: &http.Transport{
			DialContext:     (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig: cfg, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.home = "https://" + u.Host
	c.setBase(c.home)
	return c, nil
}

func (c *Client) setBase(s string) { c.base.Store(&s) }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Error is a refusal by the control plane.
type Error struct{ Problem wire.Problem }

func (e *Error) Error() string {
	if e.Problem.Detail != "" {
		return e.Problem.Detail
	}
	return fmt.Sprintf("the control plane answered %d %s", e.Problem.Status, e.Problem.Title)
}

// Status is the HTTP status of the refusal.
func (e *Error) Status() int { return e.Problem.Status }

// Hint says what to do.
func (e *Error) Hint() string { return e.Problem.Hint }

// An UnreachableError says that no control plane answered: nothing is known, and nothing was done as far as known.
type UnreachableError struct {
	Where string // socket path or URL
	Err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from the control plane at %s: %v", e.Where, e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *UnreachableError) Hint() string {
	switch {
	case strings.HasPrefix(e.Where, "https://"):
		return "check the URL and that assayd runs there (systemctl status assayd)"
	case errors.Is(e.Err, fs.ErrPermission):
		return "run it as root, or name another control plane with --server"
	}
	return "run it on a control host where assayd runs (systemctl status assayd), or name one with --server"
}

func (c *Client) where() string {
	if c.sock != "" {
		return c.sock
	}
	return *c.base.Load()
}

// send makes one request, follows the leader, and returns the answer with its body open, status 2xx. A write carries a key
// of its own, so that it is done once: it is sent again when its answer was lost or no leader was there, for patience at the
// most.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	key := ""
	if method != http.MethodGet {
		key = rand.Text()
	}
	reached, until := false, time.Now().Add(patience)
	for {
		resp, err := c.hops(ctx, method, path, query, body, key)
		if err == nil {
			return resp, nil
		}
		again, got := passing(err)
		reached = reached || got
		if !again || !reached || key == "" || time.Now().After(until) || ctx.Err() != nil {
			return nil, err
		}
		if c.home != "" {
			c.setBase(c.home)
		}
		t := time.NewTimer(retryPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, err
		}
	}
}

// How long a write is sent again over a change of leaders, and how often. An election takes one lease, 4 s, and a little.
const (
	patience   = 20 * time.Second
	retryPause = 300 * time.Millisecond
)

// passing reports whether an error may pass by itself, and whether a control plane was reached. One that cannot be reached
// at all at first is not waited for.
func passing(err error) (again, reached bool) {
	var answer *Error
	if errors.As(err, &answer) {
		s := answer.Status()
		return s == http.StatusServiceUnavailable || s == http.StatusMisdirectedRequest && answer.Problem.Leader == "", true
	}
	var lost *UnreachableError
	if !errors.As(err, &lost) {
		return false, false
	}
	var op *net.OpError
	dialed := errors.As(err, &op) && op.Op == "dial"
	return true, !dialed
}

// hops makes a request and follows the leader.
func (c *Client) hops(ctx context.Context, method, path string, query url.Values, body []byte, key string) (*http.Response, error) {
	for hop := 0; ; hop++ {
		resp, err := c.once(ctx, method, path, query, body, key)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 == 2 {
			return resp, nil
		}
		p := readProblem(resp)
		if resp.StatusCode != http.StatusMisdirectedRequest || p.Leader == "" {
			return nil, &Error{p}
		}
		if c.sock != "" {
			p.Hint = "run it on the leader, " + p.Leader + ", or call it from here with --server " + p.Leader + " and an operator's certificate"
			return nil, &Error{p}
		}
		u, err := url.Parse(p.Leader)
		if hop == maxHops || err != nil || u.Scheme != "https" || u.Host == "" {
			return nil, &Error{p}
		}
		c.setBase("https://" + u.Host)
	}
}

func (c *Client) once(ctx context.Context, method, path string, query url.Values, body []byte, key string) (*http.Response, error) {
	target := *c.base.Load() + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var rd io.Reader
	if body != nil {
		rd = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, rd)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set(wire.IdempotencyKey, key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, context.Cause(ctx)
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, &UnreachableError{c.where(), cause} // says whose time ran out
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the method and URL, which say nothing on a socket
		}
		return nil, &UnreachableError{c.where(), err}
	}
	return resp, nil
}

func readProblem(resp *http.Response) wire.Problem {
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // a cut body still has its status
	var p wire.Problem
	if json.Unmarshal(body, &p) != nil || p.Status == 0 {
		p = wire.Problem{Title: http.StatusText(resp.StatusCode), Detail: fmt.Sprintf("the control plane answered %s", resp.Status)}
	}
	p.Status = resp.StatusCode
	return p
}

// call sends in, if not nil, as JSON and reads the answer into a T.
func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (T, error) {
	out, _, err := exchange[T](ctx, c, method, path, query, in)
	return out, err
}

// list reads a list of the size of the fleet page by page, by key.
func list[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	all := []T{}
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		items, h, err := exchange[[]T](ctx, c, http.MethodGet, path, q, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		next := h.Get(wire.ContinueHeader)
		if next == "" {
			return all, nil
		}
		q.Set("continue", next)
	}
}

func exchange[T any](ctx context.Context, c *Client, method, path string, query url.Values, in any) (out T, h http.Header, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return out, nil, fmt.Errorf("encode %s %s: %w", method, path, err)
		}
	}
	resp, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return out, nil, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return out, nil, &UnreachableError{c.where(), fmt.Errorf("its answer broke off or is not JSON: %w", err)}
	}
	return out, resp.Header, nil
}
