// Package bandwidth judges how fast a GPU's copies to and from the host are, as a golden run has measured them.
//
// A link may train at full width and speed, and show no error, and still be slow: by a bad retimer or riser, a switch port or
// IOMMU setting, or a memory channel of the host. SuperBench found it on 2 % of the nodes of a cloud. It is judged against
// what the link's generation and width give, and against the node's other GPUs. Each direction counts by itself; copies both
// ways at once are shown and not judged, since healthy hosts differ there by a factor of two.
package bandwidth

import (
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/golden"
)

// ID is the check's catalog id.
const ID = "bandwidth"

// A Reading is what a golden run measured of one GPU, one copy after the other, from memory pinned near the GPU.
type Reading struct {
	Have    checks.Availability // NotSupported: no such test applies to the GPU
	Tried   bool                // the run was to measure it, and came to it
	Err     string              // why Have is not Read
	ToGPU   Rate
	FromGPU Rate
	Link    *golden.Link // nil where sysfs shows no link
	Near    bool         // the host's side ran on processors beside the GPU
}

// A Rate is bytes a second.
type Rate struct{ Median, Worst float64 }

// Of takes the reading from a run's result.
func Of(r golden.Result) Reading {
	to, from := find(r, "k21_h2d"), find(r, "k21_d2h")
	out := Reading{Err: "the run ended before copies were measured"}
	if r.Err != "" {
		out.Err += ": " + r.Err
	}
	for _, s := range []*golden.Stage{to, from} {
		switch {
		case s == nil:
			return out
		case s.Skip != "":
			return Reading{Have: checks.NotSupported, Err: s.Skip}
		case s.Err != "":
			return Reading{Tried: true, Err: s.Kernel + ": " + s.Err}
		case s.Copy.NoRate != "":
			return Reading{Tried: true, Err: s.Kernel + ": " + s.Copy.NoRate}
		case len(s.Copy.Rates) != 1 || !(s.Copy.Rates[0].Median > 0):
			return Reading{Tried: true, Err: s.Kernel + " gave no bandwidth" + wrong(s)}
		}
	}
	out = Reading{Have: checks.Read, Tried: true, ToGPU: rate(to), FromGPU: rate(from), Link: to.Copy.Link, Near: to.Copy.Near && from.Copy.Near}
	if out.Link == nil {
		out.Link = from.Copy.Link
	}
	return out
}

func find(r golden.Result, kernel string) *golden.Stage {
	for i := range r.Stages {
		if s := &r.Stages[i]; s.Kernel == kernel && s.Copy != nil {
			return s
		}
	}
	return nil
}

func rate(s *golden.Stage) Rate { return Rate{s.Copy.Rates[0].Median, s.Copy.Rates[0].Worst} }

func wrong(s *golden.Stage) string {
	if s.Copy.Wrong == nil {
		return ""
	}
	return ": its data was wrong (" + strings.ReplaceAll(s.Copy.Wrong.Direction, "_", " ") + ")"
}
