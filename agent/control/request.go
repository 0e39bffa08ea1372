package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// maxAnswer bounds an answer's body, in bytes.
const maxAnswer = 1 << 20

// maxHops bounds how many leaders one request follows.
const maxHops = 3

// A StatusError is an answer other than success.
type StatusError struct {
	URL     string
	Code    int // HTTP status
	Problem wire.Problem
}

func (e *StatusError) Error() string {
	what := e.Problem.Detail
	if what == "" {
		what = e.Problem.Title
	}
	if what == "" {
		what = http.StatusText(e.Code)
	}
	return fmt.Sprintf("%s: %d %s", e.URL, e.Code, what)
}

// Hint is the control plane's own advice.
func (e *StatusError) Hint() string { return e.Problem.Hint }

// Final reports whether the same request will be refused for ever: the fault is in what was sent.
func (e *StatusError) Final() bool {
	switch e.Code {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusGone:
		return true
	}
	return false
}

func fullJitter(most time.Duration) time.Duration { return rand.N(most + 1) }

// target is where requests go now.
func (c *Client) target() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// follow makes url the target. A follower's word is taken only for an https URL.
func (c *Client) follow(url string) bool {
	url = strings.TrimRight(url, "/")
	if !strings.HasPrefix(url, "https://") {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = url
	return true
}

// urlsKept bounds how many control hosts are remembered: more than there ever are at once.
const urlsKept = 16

// learn takes over which control hosts a leader names. Those known before stay behind them: the leader's own list may be short.
func (c *Client) learn(named []string) {
	c.mu.Lock()
	var urls []string
	for _, u := range slices.Concat(named, c.urls) {
		if u = strings.TrimRight(u, "/"); strings.HasPrefix(u, "https://") && !slices.Contains(urls, u) && len(urls) < urlsKept {
			urls = append(urls, u)
		}
	}
	same := len(urls) == len(c.urls)
	for _, u := range urls {
		same = same && slices.Contains(c.urls, u)
	}
	if !same {
		c.urls = urls
	}
	c.mu.Unlock()
	if same {
		return
	}
	c.cfg.Log.Info("control hosts learned", "urls", urls)
	if c.cfg.Learned != nil {
		if err := c.cfg.Learned(urls); err != nil {
			c.cfg.Log.Error("control hosts are not kept over a restart", "err", err)
		}
	}
}

// rotate leaves the target from, unless another request has done so already.
func (c *Client) rotate(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader != from {
		return
	}
	if i := slices.Index(c.urls, from); i >= 0 {
		c.next = i + 1
	}
	c.leader = c.urls[c.next%len(c.urls)]
	c.next++
}

// do sends a request to the leader, following 421, and returns a 2xx answer.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, string, error) {
	for hop := 0; ; hop++ {
		base := c.target()
		req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, bytes.NewReader(body))
		if err != nil {
			return nil, base, err
		}
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := c.http.Do(req)
		if err != nil {
			if !errors.Is(ctx.Err(), context.Canceled) { // a leader that is silent till the deadline is left as well
				c.rotate(base)
			}
			return nil, base, err
		}
		if resp.StatusCode/100 == 2 {
			return resp, base, nil
		}
		e := &StatusError{URL: base + path, Code: resp.StatusCode}
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what is cut or junk leaves the status alone to say it
		resp.Body.Close()
		_ = json.Unmarshal(data, &e.Problem)
		switch {
		case e.Code == http.StatusMisdirectedRequest && hop < maxHops && e.Problem.Leader != "" && e.Problem.Leader != base && c.follow(e.Problem.Leader):
			continue
		case e.Code == http.StatusMisdirectedRequest || e.Code >= 500:
			c.rotate(base)
		}
		return nil, base, e
	}
}

// post sends in and reads the answer into out, if out is not nil.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode for %s: %w", path, err)
	}
	resp, _, err := c.do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("answer to %s: %w", path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("answer to %s: %w", path, err)
	}
	return nil
}

// Permit asks for leave to exit 1 until ctx ends: on every URL, again and again, for the leader may just have changed.
func (c *Client) Permit(ctx context.Context, ask wire.PermitAsk) (wire.PermitAnswer, error) {
	b := c.backoff()
	for {
		var ans wire.PermitAnswer
		err := c.post(ctx, wire.PathPermit, ask, &ans)
		if err == nil {
			return ans, nil
		}
		var se *StatusError
		if errors.As(err, &se) && (se.Final() || se.Code == http.StatusForbidden || se.Code == http.StatusUnauthorized) {
			return ans, err
		}
		if !b.wait(ctx) {
			return ans, err
		}
	}
}
