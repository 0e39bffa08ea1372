package spool

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"github.com/assay-gpu/assay/agent/atomicfile"
)

var fileName = regexp.MustCompile(`^(\d{16})-([rf])\.json$`)

// load reads the folder: names only, the bodies when they are sent. Leftovers of a torn write are removed.
func (s *Spool) load() error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, d := range names {
		if strings.HasPrefix(d.Name(), atomicfile.TempPrefix) {
			s.stats.Torn++
			_ = s.fs.Remove(filepath.Join(s.dir, d.Name())) // tried again at the next start
			continue
		}
		m := fileName.FindStringSubmatch(d.Name())
		if m == nil {
			continue
		}
		seq, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			continue
		}
		e := entry{seq: seq, routine: m[2] == "r"}
		if info, err := d.Info(); err == nil {
			e.size = info.Size()
		}
		s.entries = append(s.entries, e)
		s.bytes += e.size
		s.next = max(s.next, seq+1)
	}
	sort.Slice(s.entries, func(i, j int) bool { return s.entries[i].seq < s.entries[j].seq })
	return nil
}

// flush tries to put on disk every entry that is in memory. It stops at the first the disk refuses.
func (s *Spool) flush() error {
	var waiting []uint64
	for _, e := range s.entries {
		if e.body != nil {
			waiting = append(waiting, e.seq)
		}
	}
	for _, seq := range waiting {
		// Making room for one may have removed others, so each is looked up anew.
		if i := s.find(seq); i >= 0 {
			if err := s.persist(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the place of the entry with that sequence number, or -1.
func (s *Spool) find(seq uint64) int {
	for i, e := range s.entries {
		if e.seq == seq {
			return i
		}
	}
	return -1
}

// persist writes entry i to disk. On a full disk it drops the oldest routine reports, one at a time, and tries again.
func (s *Spool) persist(i int) error {
	e := s.entries[i]
	for {
		err := atomicfile.WriteOn(s.fs, s.path(e), e.body, 0o600)
		if errors.Is(err, fs.ErrNotExist) { // the folder itself could not be made until now, or somebody removed it
			if err = s.fs.MkdirAll(s.dir, 0o700); err == nil {
				err = atomicfile.WriteOn(s.fs, s.path(e), e.body, 0o600)
			}
		}
		if err == nil {
			break
		}
		s.stats.WriteErrors++
		// A rename that was done but not synced leaves the file in place: it must not be sent twice under two names,
		// so it goes, and the body stays in memory.
		_ = s.fs.Remove(s.path(e))
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) || !s.dropRoutine(e.seq) {
			return err
		}
	}
	s.entries[s.find(e.seq)].body = nil // making room never removes the entry itself
	s.bytes += e.size
	s.trim()
	return nil
}

// trim drops reports until the folder is within its bound: the oldest routine ones first, then the oldest.
func (s *Spool) trim() {
	for s.bytes > s.limit {
		if s.dropRoutine(0) {
			continue
		}
		oldest := -1
		for i, e := range s.entries {
			if e.body == nil {
				oldest = i
				break
			}
		}
		if oldest < 0 {
			return
		}
		s.stats.DroppedFailure++
		s.remove(oldest)
	}
}

// trimMemory bounds what waits in memory.
func (s *Spool) trimMemory() {
	for {
		n, routine, oldest := 0, -1, -1
		for i, e := range s.entries {
			if e.body == nil {
				continue
			}
			n++
			if oldest < 0 {
				oldest = i
			}
			if routine < 0 && e.routine {
				routine = i
			}
		}
		switch {
		case n <= maxMemory:
			return
		case routine >= 0:
			s.stats.DroppedRoutine++
			s.remove(routine)
		default:
			s.stats.DroppedFailure++
			s.remove(oldest)
		}
	}
}

// dropRoutine removes the oldest routine report on disk, but not the one at seq keep, and reports whether there was one.
func (s *Spool) dropRoutine(keep uint64) bool {
	for i, e := range s.entries {
		if e.routine && e.body == nil && e.seq != keep {
			s.stats.DroppedRoutine++
			s.remove(i)
			return true
		}
	}
	return false
}

// remove takes entry i out of the queue and off the disk. A file that cannot be removed is sent again after a restart,
// which the report's id makes harmless.
func (s *Spool) remove(i int) {
	e := s.entries[i]
	if e.body == nil {
		s.bytes -= e.size
		if err := s.fs.Remove(s.path(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.stats.WriteErrors++
		}
	}
	s.entries = append(s.entries[:i], s.entries[i+1:]...)
}
