package kmsg

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Cursor says up to where a log has been read.
type Cursor struct {
	BootID string `json:"boot_id"`
	Seq    uint64 `json:"seq"` // the last record read
}

// A Config says what to read and from where on.
type Config struct {
	Path   string // "" stands for /dev/kmsg
	BootID string // the file that holds the boot id; "" stands for /proc/sys/kernel/random/boot_id
	After  Cursor // records of the same boot up to this one are not delivered again; the zero Cursor: all there are
}

// Stats are a reader's counters since Open.
type Stats struct {
	Records   uint64 // delivered, malformed ones included
	Malformed uint64
	Lost      uint64
}

// Bounds. The kernel's longest record is 8 KiB with its prefix and dictionary (include/linux/printk.h).
const (
	bufferSize = 64 << 10
	maxRecord  = 16 << 10 // a longer line is malformed and cut
)

// A Reader delivers the kernel log's records in order. Its methods may be called from several goroutines; Read from one.
type Reader struct {
	path, bootPath string

	mu       sync.Mutex
	src      source
	buf      []byte // read and not yet parsed
	start    int    // of buf, the first byte not parsed
	skipping bool   // within a line that was too long
	boot     string
	booted   time.Time // when the log's clock was zero
	after    uint64    // records up to this one are skipped, while catching up
	catching bool
	last     uint64 // the last record's number
	known    bool   // last is of this boot
	stats    Stats
	moved    chan struct{} // closed when Read has gone on; nil while nobody waits for that
}

// Open opens the log.
func Open(c Config) (*Reader, error) {
	if c.Path == "" {
		c.Path = "/dev/kmsg"
	}
	if c.BootID == "" {
		c.BootID = "/proc/sys/kernel/random/boot_id"
	}
	src, err := openSource(c.Path)
	if err != nil {
		return nil, fmt.Errorf("kernel log: %w", err)
	}
	r := &Reader{path: c.Path, bootPath: c.BootID, src: src, buf: make([]byte, 0, bufferSize)}
	if err := r.newBoot(); err != nil {
		src.close()
		return nil, err
	}
	if c.After.BootID == r.boot && r.boot != "" {
		r.after, r.catching, r.last, r.known = c.After.Seq, true, c.After.Seq, true
	}
	return r, nil
}

// newBoot learns the boot id and when the log's clock began.
func (r *Reader) newBoot() error {
	b, err := os.ReadFile(r.bootPath)
	if err != nil {
		return fmt.Errorf("kernel log: boot id: %w", err)
	}
	r.boot = strings.TrimSpace(string(b))
	r.last, r.known, r.catching = 0, false, false
	if _, simulated := r.src.(*file); simulated {
		st, err := os.Stat(r.bootPath)
		if err != nil {
			return fmt.Errorf("kernel log: boot id: %w", err)
		}
		r.booted = st.ModTime()
		return nil
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("kernel log: clock: %w", err)
	}
	r.booted = time.Now().Add(-time.Duration(now.Nano()))
	return nil
}

// Close closes the log. A Read that waits returns with an error.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.close()
}

// Read waits for the next record and returns it.
func (r *Reader) Read(ctx context.Context) (Record, error) {
	for {
		rec, ok, err := r.next()
		if ok || err != nil {
			return rec, err
		}
		if err := r.src.wait(ctx); err != nil {
			return Record{}, fmt.Errorf("kernel log: %w", err)
		}
	}
}

// next gives the next record there is, without waiting.
func (r *Reader) next() (Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved != nil {
		defer close(r.moved) // after what follows, with the lock still held
		r.moved = nil
	}
	for {
		if rec, ok := r.parse(); ok {
			return rec, true, nil
		}
		n, restarted, err := r.fill()
		if err != nil {
			return Record{}, false, fmt.Errorf("kernel log: %w", err)
		}
		if restarted {
			if err := r.newBoot(); err != nil {
				return Record{}, false, err
			}
		}
		if n == 0 && !restarted {
			return Record{}, false, nil
		}
	}
}

// fill reads more into the buffer.
func (r *Reader) fill() (int, bool, error) {
	if r.start > 0 {
		r.buf = append(r.buf[:0], r.buf[r.start:]...)
		r.start = 0
	}
	have := len(r.buf)
	n, restarted, err := r.src.read(r.buf[have:cap(r.buf)])
	if restarted { // what is left of the old log is half a line
		copy(r.buf[:n], r.buf[have:have+n])
		r.buf, r.skipping = r.buf[:n], false
		return n, true, err
	}
	r.buf = r.buf[:have+n]
	return n, false, err
}

// parse takes the next record out of the buffer. A record ends where a line starts that is no row of its dictionary, or
// at the end of what there is: the kernel writes a record whole.
func (r *Reader) parse() (Record, bool) {
	for r.start < len(r.buf) {
		rest := r.buf[r.start:]
		end := bytes.IndexByte(rest, '\n')
		if r.skipping {
			if end < 0 {
				r.start = len(r.buf)
				return Record{}, false
			}
			r.start, r.skipping = r.start+end+1, false
			continue
		}
		if end < 0 || end > maxRecord {
			if len(rest) <= maxRecord {
				return Record{}, false // half a line; more will come
			}
			r.start, r.skipping = r.start+maxRecord, true
			rec, _ := ParseRecord(rest[:maxRecord])
			return r.deliver(Record{Malformed: true, Text: rec.Text})
		}
		if rest[0] == ' ' { // a row whose record has been delivered
			r.start += end + 1
			continue
		}
		end++
		for end < len(rest) && rest[end] == ' ' && end <= maxRecord {
			row := bytes.IndexByte(rest[end:], '\n')
			if row < 0 {
				break
			}
			end += row + 1
		}
		r.start += end
		rec, ok := ParseRecord(rest[:end])
		if r.catching {
			if !ok || rec.Seq < r.after {
				continue
			}
			r.catching = false
			if rec.Seq == r.after {
				continue
			}
		}
		return r.deliver(rec)
	}
	return Record{}, false
}

// deliver counts a record and completes it. Always true.
func (r *Reader) deliver(rec Record) (Record, bool) {
	rec.BootID = r.boot
	if rec.Malformed {
		rec.Seq = r.last
		rec.At = time.Now()
		r.stats.Malformed++
	} else {
		rec.At = r.booted.Add(rec.Since)
		if r.known && rec.Seq > r.last+1 {
			rec.Lost = rec.Seq - r.last - 1
			r.stats.Lost += rec.Lost
		}
		r.last, r.known = rec.Seq, true
	}
	r.stats.Records++
	return rec, true
}

// Drained reports whether Read has returned every record that is in the log now. Half a line at the end is no record.
func (r *Reader) Drained() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes.IndexByte(r.buf[r.start:], '\n') >= 0 {
		return false
	}
	more, err := r.src.pending()
	return err == nil && !more
}

// Sync waits until Read has returned every record that is in the log. Another goroutine must be calling Read.
func (r *Reader) Sync(ctx context.Context) error {
	for {
		r.mu.Lock()
		if r.moved == nil {
			r.moved = make(chan struct{})
		}
		moved := r.moved
		r.mu.Unlock()
		if r.Drained() {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("kernel log not read to its end: %w", context.Cause(ctx))
		}
	}
}

// Cursor says up to where the log has been read.
func (r *Reader) Cursor() Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Cursor{r.boot, r.last}
}

// Stats gives the reader's counters.
func (r *Reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}
