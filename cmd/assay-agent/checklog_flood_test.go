package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/kernlog"
	"github.com/assay-gpu/assay/checks/logtext"
	"github.com/assay-gpu/assay/checks/policy"
)

// A flood is a kernel log of n lines of 10 kinds, one GPU each, a line a millisecond, made as it is read.
type flood struct {
	n, at int
	buf   []byte
	peak  uint64 // bytes of heap in use, at most
}

func (f *flood) Read(p []byte) (int, error) {
	for len(f.buf) < 1<<15 && f.at < f.n {
		f.buf = fmt.Appendf(f.buf, "[%5d.%06d] NVRM: Xid (PCI:0000:%02x:00): 95, pid=%d, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No\n",
			1+f.at/1000, f.at%1000*1000, f.at%10+1, 4000+f.at%10)
		f.at++
		if f.at%100_000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			f.peak = max(f.peak, m.HeapInuse)
		}
	}
	if len(f.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.buf)
	f.buf = f.buf[:copy(f.buf, f.buf[n:])]
	return n, nil
}

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A million lines of ten kinds are ten incidents, each with its count, read in bounded memory (NVSentinel 1120: 800,000
// duplicates of 29). The time is for the reader, and holds the making of the lines: on a shared machine it proves nothing.
func TestCheckLogFlood(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	f := &flood{n: n}
	var out bytes.Buffer
	start := cpuTime()
	r := logtext.NewReader(f, logtext.Options{Now: logRead, Want: kernlog.Holds})
	err := checkLog(&out, r, aer.Tree{}, policy.Default(), true)
	took := cpuTime() - start
	if e, ok := err.(*exitError); !ok || e.code != exitFault {
		t.Errorf("exits with %v", err)
	}
	want := ""
	for i := range 10 {
		want += fmt.Sprintf("0001-01-01T00:00:01.%03dZ boot=\"\" xid 95 gpu/0000:%02x:00.0 fail reset_gpu hard=true secondary=false count=%d\n", i, i+1, n/10)
	}
	got := bytes.ReplaceAll([]byte(brief(t, out.String())), []byte("00:00:01Z"), []byte("00:00:01.000Z"))
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if grown := int64(f.peak) - int64(before.HeapInuse); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	t.Logf("%d lines in %v of processor time, %.0f a second; %d MiB of heap more at most", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), (int64(f.peak)-int64(before.HeapInuse))>>20)
}
