// Package spool keeps reports until the control plane has them.
//
// A report that is no routine one is on disk, synced, before Put returns. A routine report waits in memory and goes to
// disk only when the next one comes and it is still unsent, so that a healthy node with its control plane at hand writes
// nothing. Reports leave in the order they came. The folder is bounded in bytes: the oldest routine reports go first,
// then, when only failures are left, the oldest of those; both are counted. On a full disk routine reports make room and
// failures that still cannot be written are held in memory and tried again.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
)

// maxMemory is how many reports may wait in memory while the disk refuses them.
const maxMemory = 1024

// A Spool is a queue of reports on disk. Its methods may be called from several goroutines.
type Spool struct {
	dir   string
	fs    atomicfile.FS
	ready chan struct{} // holds one token while there is something to send

	mu      sync.Mutex
	limit   int64 // bytes on disk
	entries []entry
	next    uint64 // sequence number of the next report
	bytes   int64  // of the entries on disk
	stats   Stats
}

// An entry is one report in the queue. In memory its body is kept; on disk only its name.
type entry struct {
	seq     uint64
	routine bool
	size    int64
	body    []byte // nil when on disk
}

// Stats are the spool's numbers. The counters only rise.
type Stats struct {
	Reports        int   // waiting
	Bytes          int64 // on disk
	InMemory       int   // of the waiting ones
	DroppedRoutine int   // for want of room
	DroppedFailure int   // for want of room
	Torn           int   // files that did not read back as a report
	WriteErrors    int   // writes the disk refused
}

// Open reads what an earlier run left in dir and makes dir when it is not there. limit is in bytes. A disk that refuses to
// make it is met at each write again: until it gives way, reports wait in memory.
func Open(dir string, limit int64) (*Spool, error) { return OpenOn(atomicfile.OS, dir, limit) }

// OpenOn is Open on another file system.
func OpenOn(fsys atomicfile.FS, dir string, limit int64) (*Spool, error) {
	s := &Spool{dir: dir, fs: fsys, limit: limit, ready: make(chan struct{}, 1), next: 1}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		s.stats.WriteErrors++
	} else if err := s.load(); err != nil {
		return nil, fmt.Errorf("spool %s: %w", dir, err)
	}
	s.mu.Lock()
	s.trim()
	s.signal()
	s.mu.Unlock()
	return s, nil
}

// SetLimit changes the bound, in bytes.
func (s *Spool) SetLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.trim()
}

// Put adds r. When it returns nil a report that is no routine one is durable. An error means the report waits in memory
// only (it is still sent), or, for a routine report on a full disk, that it was dropped and counted.
func (s *Spool) Put(r checks.Report) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("spool report %s: %w", r.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	e := entry{seq: s.next, routine: r.Routine(), size: int64(len(body)), body: body}
	s.next++
	s.entries = append(s.entries, e)
	defer s.signal()
	if e.routine {
		s.trimMemory()
		return nil
	}
	err = s.persist(len(s.entries) - 1)
	s.trimMemory()
	return err
}

// Flush writes to disk what waits in memory, as before an orderly stop.
func (s *Spool) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

// Ready delivers a token when there is a report to send.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

// Peek returns the oldest report and its place; false when there is none. A file that does not read back as a report
// is counted, removed and passed over.
func (s *Spool) Peek() (checks.Report, uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.entries) > 0 {
		e := s.entries[0]
		body := e.body
		if body == nil {
			var err error
			if body, err = s.fs.ReadFile(s.path(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return checks.Report{}, 0, false // the disk may answer again later
			}
		}
		var r checks.Report
		if err := json.Unmarshal(body, &r); err == nil && r.ID != "" {
			return r, e.seq, true
		}
		s.stats.Torn++
		s.remove(0)
	}
	return checks.Report{}, 0, false
}

// Done takes the report at seq out of the queue: the control plane has it.
func (s *Spool) Done(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.find(seq); i >= 0 {
		s.remove(i)
	}
	s.signal()
}

// Stats returns the spool's numbers.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Reports, st.Bytes = len(s.entries), s.bytes
	for _, e := range s.entries {
		if e.body != nil {
			st.InMemory++
		}
	}
	return st
}

// signal leaves a token in ready when there is something to send.
func (s *Spool) signal() {
	if len(s.entries) == 0 {
		return
	}
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Spool) path(e entry) string {
	class := "f"
	if e.routine {
		class = "r"
	}
	return filepath.Join(s.dir, fmt.Sprintf("%016d-%s.json", e.seq, class))
}
