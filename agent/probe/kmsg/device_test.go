package kmsg

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"
)

// The real /dev/kmsg, where the test may open it.
func TestReaderOnTheKernelsOwnLog(t *testing.T) {
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no kernel log to write to: %v", err)
	}
	defer f.Close()
	r, err := Open(Config{})
	if err != nil {
		t.Skipf("no kernel log to read: %v", err)
	}
	defer r.Close()
	// To the end of what there is.
	for !r.Drained() {
		read(t, r)
	}
	at := r.Cursor()
	mark := "assay test " + strconv.Itoa(os.Getpid())
	written := make(chan time.Time, 1)
	go func() {
		time.Sleep(5 * time.Millisecond)
		written <- time.Now()
		f.WriteString("<6>" + mark + "\n")
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		rec, err := r.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Malformed {
			t.Errorf("the kernel's own record is malformed: %+v", rec)
		}
		if rec.Text != mark {
			continue
		}
		t.Logf("read after %v", time.Since(<-written))
		if rec.Priority != 6 || rec.BootID == "" || rec.Seq <= at.Seq && at.Seq > 0 {
			t.Errorf("got %+v after %+v", rec, at)
		}
		if d := time.Since(rec.At).Abs(); d > time.Minute {
			t.Errorf("At is %v off", d)
		}
		break
	}
	again, err := Open(Config{After: r.Cursor()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	for {
		rec, err := again.Read(short)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Text == mark {
			t.Errorf("delivered again after the cursor: %+v", rec)
		}
	}
}
