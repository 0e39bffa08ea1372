package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// maxDesired bounds one desired state, in bytes.
const maxDesired = 8 << 20

// A RefusedError says why a desired state was not taken.
type RefusedError struct {
	Term, HaveTerm       int64
	Version, HaveVersion uint64
}

func (e *RefusedError) Error() string {
	if e.Term < e.HaveTerm {
		return fmt.Sprintf("desired state of term %d refused: term %d has been seen, so its sender no longer leads", e.Term, e.HaveTerm)
	}
	return fmt.Sprintf("desired state %d refused: %d is at hand", e.Version, e.HaveVersion)
}

// Admit says whether a desired state may be taken after one of the given term and version: never of a lower term, never
// an older version. The same version again is taken: after a reconnect it carries what is left of the certificate now.
func Admit(d wire.Desired, term int64, version uint64) error {
	if d.Term < term || d.Version < version {
		return &RefusedError{d.Term, term, d.Version, version}
	}
	return nil
}

// streams keeps a stream until ctx ends.
func (c *Client) streams(ctx context.Context, a Agent, gangs Gangs) {
	b := c.backoff()
	for ctx.Err() == nil {
		base, err := c.stream(ctx, a, gangs, b)
		c.connected.Store(false)
		if ctx.Err() != nil {
			return
		}
		var refused *RefusedError
		if errors.As(err, &refused) {
			c.rotate(base)
		}
		c.cfg.Log.Warn("stream to the control plane ended", "url", base, "err", err)
		if !b.wait(ctx) {
			return
		}
	}
}

// stream reads one stream to its end and says whose it was.
func (c *Client) stream(ctx context.Context, a Agent, gangs Gangs, b *backoff) (base string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, base, err := c.do(ctx, http.MethodGet, wire.PathStream, nil)
	if err != nil {
		return base, err
	}
	defer resp.Body.Close()
	if gangs != nil {
		gangs.Repeat()
	}
	r := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := readLine(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the control plane closed it")
			}
			return base, err
		}
		a.Heard()
		if len(line) == 0 {
			continue // keeps the connection warm
		}
		var d wire.Desired
		if err := json.Unmarshal(line, &d); err != nil {
			return base, fmt.Errorf("desired state: %w", err)
		}
		term, version, err := a.Fence(ctx)
		if err != nil {
			return base, err
		}
		if err := Admit(d, term, version); err != nil {
			return base, err
		}
		if err := a.Desire(ctx, d); err != nil {
			// One the disk refuses holds in memory; a restart would find the one before.
			c.cfg.Log.Error("desired state is not kept", "revision", d.Version, "err", err)
		}
		c.learn(d.Control)
		if !c.connected.Swap(true) {
			c.cfg.Log.Info("connected to the control plane", "url", base, "term", d.Term)
			c.stands()
		}
		b.reset()
	}
}

// readLine reads up to a line feed, which it leaves out. A line too long for a desired state is an error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxDesired {
			return nil, fmt.Errorf("desired state: longer than %d bytes", maxDesired)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
