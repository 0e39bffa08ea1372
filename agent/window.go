package agent

import (
	"slices"
	"time"

	"github.com/assay-gpu/assay/checks"
)

// maxWindow bounds how many findings can share an incident.
const maxWindow = 256

// A Window groups findings into incidents as they arrive: each new finding is looked at together with those that came
// shortly before it.
type Window struct {
	gap, cause time.Duration
	recent     []checks.Finding
}

// NewWindow returns an empty window with the policy's incident gap and cause delay.
func NewWindow(gap, cause time.Duration) *Window { return &Window{gap: gap, cause: cause} }

// Add gives new findings their incident, and marks those that are only a consequence of another.
func (w *Window) Add(fs []checks.Finding) []checks.Finding {
	if len(fs) == 0 {
		return nil
	}
	newest := slices.MaxFunc(fs, func(a, b checks.Finding) int { return a.At.Compare(b.At) }).At
	w.recent = slices.DeleteFunc(w.recent, func(f checks.Finding) bool { return newest.Sub(f.At) > w.gap+w.cause })
	if drop := len(w.recent) + len(fs) - maxWindow; drop > 0 {
		w.recent = w.recent[min(drop, len(w.recent)):]
	}
	before := len(w.recent)
	all := checks.GroupIncidents(append(slices.Clone(w.recent), fs...), w.gap, w.cause)
	w.recent = all
	return slices.Clone(all[before:])
}
