package cycle

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/scheduler"
)

// refusal says in numbers why a gang has no place now.
func refusal(r *scheduler.Refusal) string {
	if r.Invalid != "" {
		return r.Invalid
	}
	var parts []string
	for _, x := range []struct {
		reason scheduler.Reason
		text   string
	}{
		{scheduler.Taken, "in use"}, {scheduler.Kept, "reserved for others"}, {scheduler.Barred, "out of service"},
		{scheduler.Uncertified, "not certified"}, {scheduler.Shallow, "certified at a lower level"}, {scheduler.Old, "certified too long ago"},
		{scheduler.Lapsing, "certified for too short a time"}, {scheduler.Outside, "not among those it may use"}, {scheduler.Unseen, "never seen"},
	} {
		if n := r.Counts[x.reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, x.text))
		}
	}
	s := fmt.Sprintf("needs %d nodes; %d would do now", r.Need, r.Fit)
	if r.Fit >= r.Need {
		s = fmt.Sprintf("needs %d nodes close together; %d would do, but not together", r.Need, r.Fit)
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, ", ")
	}
	return s
}
