package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// stopTimeout bounds the last heartbeat, which announces the stop.
const stopTimeout = 2 * time.Second

// heartbeats says every so often that the agent lives, and at the end that it stops.
func (c *Client) heartbeats(ctx context.Context, a Agent) {
	for {
		every := a.HeartbeatEvery()
		if every <= 0 {
			every = 10 * time.Second
		}
		c.beat(ctx, a, every)
		if !sleep(ctx, every) {
			break
		}
	}
	// The agent's loop may have ended by now, so the last heartbeat says no more than that.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	h := c.last
	h.Stopping = true
	if err := c.post(sctx, wire.PathHeartbeat, h, nil); err != nil {
		c.cfg.Log.Warn("the control plane was not told of the stop", "err", err)
	}
}

func (c *Client) beat(ctx context.Context, a Agent, every time.Duration) {
	h, err := a.Heartbeat(ctx)
	if err != nil {
		return // the agent stops
	}
	c.last = h
	bctx, cancel := context.WithTimeout(ctx, min(answerTimeout, max(every, time.Second)))
	defer cancel()
	if err := c.post(bctx, wire.PathHeartbeat, h, nil); err != nil {
		c.cfg.Log.Debug("heartbeat not delivered", "err", err) // the stream's end is logged once, this would be each time
		return
	}
	a.Heard()
}

// upload sends reports, oldest first, until ctx ends.
func (c *Client) upload(ctx context.Context, a Agent, reports Reports) {
	b := c.backoff()
	for {
		r, place, ok := reports.Peek()
		if !ok {
			select {
			case <-reports.Ready():
				continue
			case <-ctx.Done():
				return
			}
		}
		rctx, cancel := context.WithTimeout(ctx, answerTimeout)
		var ans wire.ReportAnswer
		err := c.post(rctx, wire.PathReports, r, &ans)
		cancel()
		var se *StatusError
		switch {
		case err == nil:
			reports.Done(place)
			a.Heard()
			b.reset()
		case errors.As(err, &se) && se.Final():
			// It would be refused for ever and block those behind it.
			c.cfg.Log.Error("report refused by the control plane, dropped", "report", r.ID, "verdict", r.Verdict.String(), "err", err)
			reports.Done(place)
		default:
			if !b.wait(ctx) {
				return
			}
		}
	}
}

// results sends how effects went until ctx ends.
func (c *Client) results(ctx context.Context, results Results) {
	b := c.backoff()
	for {
		r, err := results.NextResult(ctx)
		if err != nil {
			return
		}
		rctx, cancel := context.WithTimeout(ctx, answerTimeout)
		err = c.post(rctx, wire.PathEffects, r, nil)
		cancel()
		var se *StatusError
		switch {
		case err == nil:
			results.ResultSent(r.ID)
			b.reset()
		case errors.As(err, &se) && (se.Final() || se.Code == http.StatusNotFound): // it knows no such effect any more
			c.cfg.Log.Error("effect result refused by the control plane, dropped", "effect", r.ID, "err", err)
			results.ResultSent(r.ID)
		default:
			if !b.wait(ctx) {
				return
			}
		}
	}
}

// gangs tells how launches stand until ctx ends.
func (c *Client) gangs(ctx context.Context, gangs Gangs) {
	b := c.backoff()
	for {
		s, err := gangs.NextStatus(ctx)
		if err != nil {
			return
		}
		rctx, cancel := context.WithTimeout(ctx, answerTimeout)
		err = c.post(rctx, wire.PathGangs, s, nil)
		cancel()
		var se *StatusError
		switch {
		case err == nil:
			gangs.StatusSent(s)
			b.reset()
		case errors.As(err, &se) && (se.Final() || se.Code == http.StatusNotFound): // it knows no such launch any more
			c.cfg.Log.Warn("launch status not taken by the control plane, dropped", "gang", s.Launch, "state", s.Phase, "err", err)
			gangs.StatusSent(s)
		default:
			if !b.wait(ctx) {
				return
			}
		}
	}
}
