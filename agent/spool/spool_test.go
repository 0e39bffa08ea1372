package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
)

func routine(id string) checks.Report {
	return checks.Report{ID: id, Node: "n1", Why: checks.WhyBackground, Verdict: checks.Pass}
}

func failure(id string) checks.Report {
	return checks.Report{ID: id, Node: "n1", Why: checks.WhyBackground, Verdict: checks.Fail, Findings: []checks.Finding{{Check: "xid", Code: 79, Verdict: checks.Fail}}}
}

func open(t *testing.T, dir string, limit int64) *Spool {
	t.Helper()
	s, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain takes every report out and returns their ids in order.
func drain(s *Spool) string {
	var ids []string
	for {
		r, place, ok := s.Peek()
		if !ok {
			return strings.Join(ids, " ")
		}
		ids = append(ids, r.ID)
		s.Done(place)
	}
}

func put(t *testing.T, s *Spool, rs ...checks.Report) {
	t.Helper()
	for _, r := range rs {
		if err := s.Put(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrderIsKeptOverARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	put(t, s, failure("a"), routine("b"), failure("c"), routine("d"))
	// No Flush: the process is killed. What is no routine report is there, and every routine one but the last.
	s = open(t, dir, 1<<20)
	if got := drain(s); got != "a b c" {
		t.Fatalf("after a kill: %q", got)
	}
	put(t, s, failure("e"), routine("f"))
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := drain(open(t, dir, 1<<20)); got != "e f" {
		t.Fatalf("after an orderly stop: %q", got)
	}
}

func TestAHealthyNodeWritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	for i := range 5 {
		put(t, s, routine(fmt.Sprint(i)))
		drain(s)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
}

func TestRoutineReportsGoFirst(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	put(t, s, routine("r1"), failure("f1"), routine("r2"), failure("f2"), routine("r3"))
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	each := s.Stats().Bytes / 5
	s.SetLimit(s.Stats().Bytes - each)
	if st := s.Stats(); st.DroppedRoutine == 0 || st.DroppedFailure != 0 {
		t.Fatalf("stats %+v", st)
	}
	r, _, ok := s.Peek()
	if !ok || r.ID != "f1" {
		t.Fatalf("oldest left is %q: want the oldest routine report gone", r.ID)
	}
	s.SetLimit(2*each + 100)
	if got := drain(s); got != "f1 f2" && got != "f2" {
		t.Fatalf("left: %q", got)
	}
}

func TestFailuresAreBoundedTooAndCounted(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	put(t, s, failure("f1"), failure("f2"), failure("f3"))
	s.SetLimit(s.Stats().Bytes - 1)
	if st := s.Stats(); st.DroppedFailure != 1 || st.Reports != 2 {
		t.Fatalf("stats %+v", st)
	}
	if got := drain(s); got != "f2 f3" {
		t.Fatalf("left: %q", got)
	}
}

func TestTornFilesAreCountedAndPassedOver(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	put(t, s, failure("a"), failure("b"), failure("c"))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for file, content := range map[string]string{files[1]: `{"id":"b","no`, filepath.Join(dir, ".tmp-0000000000000009-f.json"): "half", filepath.Join(dir, "README"): "not ours"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, 1<<20)
	if got := drain(s); got != "a c" {
		t.Fatalf("got %q", got)
	}
	if st := s.Stats(); st.Torn != 2 {
		t.Fatalf("stats %+v: want the torn report and the leftover counted", st)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "README" {
		t.Fatalf("left %v, %v", left, err)
	}
}

func TestReadyTellsOfReports(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	select {
	case <-s.Ready():
		t.Fatal("ready and empty")
	default:
	}
	put(t, s, failure("a"))
	<-s.Ready()
	s = open(t, dir, 1<<20)
	<-s.Ready() // left by an earlier run
}

// Whatever is put and taken in whatever order, with restarts between: failures come out once each, in order, and the folder
// keeps its bound.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "spool")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		const limit = 1 << 20                                 // never reached by failures here
		s, err := OpenOn(unsynced{atomicfile.OS}, dir, limit) // nothing here cuts the power
		if err != nil {
			rt.Fatal(err)
		}
		var want []string // failures put and not taken
		for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"failure", "routine", "take", "restart", "flush"}).Draw(rt, "step") {
			case "failure":
				id := fmt.Sprintf("f%d", i)
				if err := s.Put(failure(id)); err != nil {
					rt.Fatal(err)
				}
				want = append(want, id)
			case "routine":
				if err := s.Put(routine(fmt.Sprintf("r%d", i))); err != nil {
					rt.Fatal(err)
				}
			case "take":
				if r, place, ok := s.Peek(); ok {
					if r.ID[0] == 'f' {
						if len(want) == 0 || want[0] != r.ID {
							rt.Fatalf("took %s, want one of %v", r.ID, want)
						}
						want = want[1:]
					}
					s.Done(place)
				}
			case "restart":
				if s, err = OpenOn(unsynced{atomicfile.OS}, dir, limit); err != nil {
					rt.Fatal(err)
				}
			case "flush":
				if err := s.Flush(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		var got []string
		for id := range strings.FieldsSeq(drain(s)) {
			if id[0] == 'f' {
				got = append(got, id)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			rt.Fatalf("left %v, want %v", got, want)
		}
	})
}
