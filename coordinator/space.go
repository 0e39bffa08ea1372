package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
)

// spaceEvery is how often the store's room is looked at, pageFull how often a full one pages.
const (
	spaceEvery = 15 * time.Second
	pageFull   = time.Hour
)

// keepRoom watches the store's room, leading or not: a full store elects no leader. Where etcd is this process's own it makes
// room: by compaction and defragmentation of its own member, when that is full or mostly free. A full store takes no
// history either, so its page goes straight to the pager.
func (c *Coordinator) keepRoom(ctx context.Context) {
	var paged time.Time
	for {
		p, err := c.cfg.Store.Space(ctx)
		if err == nil {
			c.space.Store(&p)
			if p.Full && (paged.IsZero() || time.Since(paged) > pageFull) {
				paged = time.Now()
				c.pageFull(ctx, p)
			}
			if c.cfg.OwnStore && (p.Full || p.Fragmented()) {
				p, err = c.reclaim(ctx, p)
			}
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("room of the store", "err", err)
		}
		if !pause(ctx, c.cfg.spaceEvery()) {
			return
		}
	}
}

func (c Config) spaceEvery() time.Duration {
	if c.SpaceEvery > 0 {
		return c.SpaceEvery
	}
	return spaceEvery
}

func (c *Coordinator) reclaim(ctx context.Context, before store.Space) (store.Space, error) {
	start := time.Now()
	after, err := c.cfg.Store.Reclaim(ctx)
	if err != nil {
		return before, err
	}
	c.space.Store(&after)
	c.cfg.Log.Warn("store made room", "bytes_before", before.Size, "bytes", after.Size, "quota", after.Quota, "was_full", before.Full, "full", after.Full,
		"duration_seconds", time.Since(start).Seconds())
	return after, nil
}

func (c *Coordinator) pageFull(ctx context.Context, p store.Space) {
	const reason = "store_full"
	text := fmt.Sprintf("etcd is full: %d MiB of %d MiB, %d MiB in use. Nothing is decided or recorded until there is room", p.Size>>20, p.Quota>>20, p.Used>>20)
	c.cfg.Log.Error("page", "reason", reason, "text", text)
	c.metrics.Page(reason)
	if c.cfg.Pager == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pageDeadline)
	defer cancel()
	if err := c.cfg.Pager.Page(ctx, "", reason, text); err != nil {
		c.cfg.Log.Error("page not delivered", "reason", reason, "err", err)
	}
}
