package cycle

import (
	"fmt"
	"time"

	"github.com/assay-gpu/assay/scheduler"
)

// Reserve gives the fleet the windows of the queue's reservations as far as plans look. The window that is now, or comes
// next, has the reservation's name: jobs that name it run there. Later ones of a recurring reservation keep their nodes free.
func (c *Cycle) Reserve(now int64) {
	seen := map[string]bool{}
	for _, r := range c.Queue.Reservations() {
		for i, w := range r.Windows(now, now+c.Options.Window) {
			name := r.Name
			if i > 0 {
				name = fmt.Sprintf("%s@%d", r.Name, w.Start)
			}
			seen[name] = true
			c.Fleet.Reserve(scheduler.Reservation{Name: name, Start: time.Unix(w.Start, 0), End: time.Unix(w.End, 0), Nobody: r.Maint || i > 0, Nodes: c.Fleet.View().Set(r.Nodes...)})
		}
	}
	for name := range c.windows {
		if !seen[name] {
			c.Fleet.Unreserve(name)
		}
	}
	c.windows = seen
}
