package host

import (
	"fmt"
	"sync/atomic"
	"time"
)

// healthEvery is how long a disk's health log stands: each reading is a command that the disk carries out between its reads
// and writes, and what the log tells changes over days.
const healthEvery = 10 * time.Minute

// healthLogs is what the disks last said of themselves. But for renew it belongs to the group nvme.
type healthLogs struct {
	renew atomic.Bool // the next round asks every disk anew
	kept  map[string]healthLog
}

// A healthLog is one answer, or why there was none.
type healthLog struct {
	text string
	err  error
	at   time.Time
}

// round begins a reading of all disks, and gives what was kept of the one before. A disk that is not asked for in it is
// forgotten.
func (h *healthLogs) round() (before map[string]healthLog) {
	before, h.kept = h.kept, map[string]healthLog{}
	if h.renew.Swap(false) {
		return nil
	}
	return before
}

// text is a disk's log: the one before while it stands, with its age in seconds, or a new one. identity is the disk's own:
// another disk in the same place has its own log.
func (h *healthLogs) text(r *recorder, before map[string]healthLog, name, identity string) (string, error) {
	path := "smart/" + name
	if _, replay := r.src.(Texts); replay {
		return r.Text(path)
	}
	now, key := time.Now(), name+" "+identity
	l, ok := before[key]
	if !ok || now.Sub(l.at) >= healthEvery {
		l = healthLog{at: now}
		l.text, l.err = r.src.Text(path)
	}
	h.kept[key] = l
	text := l.text
	if age := int(now.Sub(l.at).Seconds()); age > 0 && l.err == nil {
		text += fmt.Sprintf(" age=%d", age)
	}
	r.keep(path, text, l.err)
	return text, l.err
}

// Renew has the next Read ask the disks for their health logs, however young the last ones are.
func (p *Probe) Renew() { p.health.renew.Store(true) }
