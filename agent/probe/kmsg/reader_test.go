package kmsg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A log is a kernel log in a file, with its boot id.
type log struct {
	t         *testing.T
	dir, path string
}

func newLog(t *testing.T, content string) *log {
	dir := t.TempDir()
	l := &log{t, dir, filepath.Join(dir, "kmsg")}
	l.write(filepath.Join(dir, "boot_id"), "boot-1\n")
	l.write(l.path, content)
	return l
}

func (l *log) write(path, content string) {
	l.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *log) append(s string) {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(s); err != nil {
		l.t.Fatal(err)
	}
}

// reboot replaces boot id and log, as agent/sim does.
func (l *log) reboot(boot, content string) {
	l.write(filepath.Join(l.dir, "boot_id"), boot+"\n")
	l.write(l.path+".new", content)
	if err := os.Rename(l.path+".new", l.path); err != nil {
		l.t.Fatal(err)
	}
}

func (l *log) open(after Cursor) *Reader {
	l.t.Helper()
	r, err := Open(Config{Path: l.path, BootID: filepath.Join(l.dir, "boot_id"), After: after})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { r.Close() })
	return r
}

func read(t *testing.T, r *Reader) Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rec, err := r.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// silent fails if there is a record to read.
func silent(t *testing.T, r *Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if rec, err := r.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %+v, %v; want nothing", rec, err)
	}
}

func line(seq int) string { return fmt.Sprintf("3,%d,%d,-;line %d\n", seq, seq*1000, seq) }

func TestReaderFollowsAFile(t *testing.T) {
	l := newLog(t, line(0)+line(1)+" KEY=value\n")
	r := l.open(Cursor{})
	if got := read(t, r); got.Text != "line 0" || got.BootID != "boot-1" || got.Lost != 0 {
		t.Errorf("got %+v", got)
	}
	if r.Drained() {
		t.Error("drained with a record unread")
	}
	if got := read(t, r); got.Text != "line 1" || len(got.Dict) != 1 {
		t.Errorf("got %+v", got)
	}
	if !r.Drained() {
		t.Error("not drained at the end")
	}
	silent(t, r)
	l.append(line(2))
	if r.Drained() {
		t.Error("drained with a record in the file")
	}
	if got := read(t, r); got.Seq != 2 {
		t.Errorf("got %+v", got)
	}
	if got, want := r.Cursor(), (Cursor{"boot-1", 2}); got != want {
		t.Errorf("cursor %+v, want %+v", got, want)
	}
}

func TestReaderGoesOnAfterTheCursor(t *testing.T) {
	content := line(3) + "junk\n" + line(4) + line(5)
	for _, tt := range []struct {
		name  string
		after Cursor
		first uint64
		lost  uint64
	}{
		{"no cursor: all there is", Cursor{}, 3, 0},
		{"in the middle", Cursor{"boot-1", 4}, 5, 0},
		{"overwritten since", Cursor{"boot-1", 1}, 3, 1},
		{"another boot: all there is, and nothing said of before", Cursor{"boot-0", 4}, 3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newLog(t, content).open(tt.after)
			if got := read(t, r); got.Seq != tt.first || got.Lost != tt.lost || got.Malformed {
				t.Errorf("got %+v, want seq %d lost %d", got, tt.first, tt.lost)
			}
		})
	}
	t.Run("at its end", func(t *testing.T) {
		l := newLog(t, content)
		r := l.open(Cursor{"boot-1", 5})
		silent(t, r)
		l.append("junk\n")
		if got := read(t, r); !got.Malformed || got.Seq != 5 {
			t.Errorf("got %+v, want the junk after the cursor", got)
		}
	})
}

func TestReaderCountsGapsAndJunk(t *testing.T) {
	r := newLog(t, line(0)+"no record\n"+"\xff\xfe\n"+line(4)+"3,4").open(Cursor{})
	read(t, r)
	if got := read(t, r); !got.Malformed || got.Text != "no record" || got.Seq != 0 {
		t.Errorf("got %+v", got)
	}
	if got := read(t, r); !got.Malformed || got.Text != `\xff\xfe` {
		t.Errorf("got %+v", got)
	}
	if got := read(t, r); got.Seq != 4 || got.Lost != 3 {
		t.Errorf("got %+v, want 3 lost", got)
	}
	silent(t, r) // half a line
	if !r.Drained() {
		t.Error("half a line keeps the log from being drained")
	}
	if got, want := r.Stats(), (Stats{Records: 4, Malformed: 2, Lost: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReaderWaitsForTheRestOfALine(t *testing.T) {
	l := newLog(t, "3,0,0,-;first ")
	r := l.open(Cursor{})
	silent(t, r)
	l.append("half\n")
	if got := read(t, r); got.Text != "first half" {
		t.Errorf("got %+v", got)
	}
}

func TestReaderCutsALineWithoutEnd(t *testing.T) {
	l := newLog(t, line(0)+"3,1,1,-;"+strings.Repeat("x", 1<<20))
	r := l.open(Cursor{})
	read(t, r)
	if got := read(t, r); !got.Malformed || len(got.Text) > maxRecord {
		t.Errorf("got %d bytes, malformed %v", len(got.Text), got.Malformed)
	}
	silent(t, r)
	l.append("yy\n" + line(2))
	if got := read(t, r); got.Seq != 2 || got.Lost != 1 {
		t.Errorf("got %+v, want record 2 with 1 lost", got)
	}
}

func TestReaderSeesAReboot(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reboot func(*log)
	}{
		{"file replaced", func(l *log) { l.reboot("boot-2", line(0)+line(1)) }},
		{"file truncated", func(l *log) {
			l.write(filepath.Join(l.dir, "boot_id"), "boot-2\n")
			l.write(l.path, line(0))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog(t, line(0)+line(1)+line(2)+"half a li")
			r := l.open(Cursor{})
			for range 3 {
				read(t, r)
			}
			tt.reboot(l)
			if r.Drained() {
				t.Error("drained with a new log unread")
			}
			if got := read(t, r); got.BootID != "boot-2" || got.Seq != 0 || got.Lost != 0 || got.Malformed {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("the old log is read to its end first", func(t *testing.T) {
		l := newLog(t, line(0)+line(1))
		r := l.open(Cursor{})
		l.reboot("boot-2", line(0))
		var got []string
		for range 3 {
			rec := read(t, r)
			got = append(got, fmt.Sprint(rec.BootID, rec.Seq))
		}
		if s := strings.Join(got, " "); s != "boot-10 boot-11 boot-20" {
			t.Errorf("got %s", s)
		}
	})
}

func TestReaderFlood(t *testing.T) {
	l := newLog(t, "")
	r := l.open(Cursor{})
	const n = 200_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	go func() {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
			if b.Len() > 100_000 || i == n-1 {
				l.append(b.String())
				b.Reset()
			}
		}
	}()
	for i := range n {
		if got := read(t, r); got.Seq != uint64(i) || got.Lost != 0 {
			t.Fatalf("record %d: got %+v", i, got)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
	if cap(r.buf) != bufferSize {
		t.Errorf("buffer grew to %d", cap(r.buf))
	}
}

func TestSyncWaitsForTheEnd(t *testing.T) {
	l := newLog(t, "")
	r := l.open(Cursor{})
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var got uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			rec, err := r.Read(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			got = rec.Seq
			mu.Unlock()
		}
	})
	for i := 1; i <= 200; i++ {
		l.append(line(3 * i))
		l.append(line(3*i+1) + line(3*i+2))
		if err := r.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if c := r.Cursor(); c.Seq != uint64(3*i+2) {
			t.Fatalf("round %d: Sync returned at %d", i, c.Seq)
		}
	}
	cancel()
	wg.Wait()
	if got == 0 {
		t.Error("the reader returned nothing")
	}
	l.append(line(9999))
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if err := r.Sync(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync without a reader: %v", err)
	}
}

// A record reaches the agent well within 30 ms of being written: the whole way to a revoked certificate has 300 ms.
func TestLatency(t *testing.T) {
	l := newLog(t, "")
	r := l.open(Cursor{})
	var worst time.Duration
	slow := 0
	const n = 100
	for i := range n {
		written := make(chan time.Time, 1)
		go func() {
			time.Sleep(2 * time.Millisecond) // until the reader waits
			written <- time.Now()
			l.append(line(i))
		}()
		read(t, r)
		d := time.Since(<-written)
		worst = max(worst, d)
		if d > 30*time.Millisecond {
			slow++
		}
	}
	t.Logf("worst of %d: %v", n, worst)
	if slow > n/20 { // a loaded test machine may delay a few
		t.Errorf("%d of %d records took over 30 ms, the worst %v", slow, n, worst)
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(Config{Path: filepath.Join(dir, "kmsg")}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
	l := newLog(t, "")
	if _, err := Open(Config{Path: l.path, BootID: filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "boot id") {
		t.Errorf("no boot id: %v", err)
	}
}

func TestReadEndsWithTheContextAndWithClose(t *testing.T) {
	r := newLog(t, "").open(Cursor{})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("stopped by the test")
	time.AfterFunc(5*time.Millisecond, func() { cancel(why) })
	if _, err := r.Read(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	time.AfterFunc(5*time.Millisecond, func() { r.Close() })
	if _, err := r.Read(context.Background()); err == nil {
		t.Error("Read of a closed log gave no error")
	}
}
