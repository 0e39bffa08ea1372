package rules

import (
	"github.com/assay-gpu/assay/scheduler/backfill"
)

// How far plans look, and at how many jobs, when a site says nothing.
const (
	mostPlanned = 100_000
	longestPlan = 366 * 24 * 3600 // seconds
)

// Plan is how the site lets jobs that wait be planned, and who may pass them.
func (p *Priority) Plan() backfill.Options {
	o := backfill.DefaultOptions()
	if p.Depth > 0 {
		o.Depth = p.Depth
	}
	if p.Ahead > 0 {
		o.Window = int64(p.Ahead)
	}
	o.EASY, o.Strict, o.Renew = p.Backfill == "easy", p.Backfill == "none", p.Renewed
	return o
}

func (p *Priority) planFaults(bad func(string, ...any)) {
	switch p.Backfill {
	case "", "conservative", "easy", "none":
	default:
		bad("backfill %q: want conservative, easy or none", p.Backfill)
	}
	if p.Depth < 0 || p.Depth > mostPlanned {
		bad("plan_depth %d: want 1 to %d jobs", p.Depth, mostPlanned)
	}
	if p.Ahead != 0 && (p.Ahead < 3600 || p.Ahead > longestPlan) {
		bad("plan_ahead %s: want an hour to a year", p.Ahead)
	}
}
