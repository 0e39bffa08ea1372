package launch

import (
	"context"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// fakeNode is a node that passes its check unless told otherwise.
type fakeNode struct {
	mu    sync.Mutex
	bad   string
	hang  bool
	ended []int64
}

func (n *fakeNode) Check(ctx context.Context, _ wire.GangOrder) (bool, string, uint64) {
	n.mu.Lock()
	bad, hang := n.bad, n.hang
	n.mu.Unlock()
	if hang {
		<-ctx.Done()
		return false, "no answer", 0
	}
	return bad == "", bad, 7
}

func (n *fakeNode) Ended(_ context.Context, o wire.GangOrder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, o.Job)
}

func (n *fakeNode) left() []int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ended)
}

// begin runs a launcher until the test ends.
func begin(t *testing.T, n *fakeNode) *Launcher {
	t.Helper()
	l := New(Config{Node: "gpu001", BootID: func() (string, error) { return "b1", nil }, Dir: filepath.Join(t.TempDir(), "launch"), Keeper: keeper, Agent: n,
		Log: slog.New(slog.DiscardHandler), Grace: 300 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

// next is the next status told.
func next(t *testing.T, l *Launcher) wire.GangStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := l.NextStatus(ctx)
	if err != nil {
		t.Fatal("no status came: ", err)
	}
	l.StatusSent(s)
	return s
}

// goes has l reserve for o, waits for its word, and says GO.
func goes(t *testing.T, l *Launcher, o *wire.GangOrder) {
	t.Helper()
	l.Want([]wire.GangOrder{*o})
	next(t, l)
	o.Phase = wire.GangGo
	l.Want([]wire.GangOrder{*o})
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

func order(t *testing.T, phase, script string) wire.GangOrder {
	return wire.GangOrder{Launch: "12.1", Job: 12, Name: "train", Phase: phase, User: me(t), Script: script, Dir: t.TempDir(), Nodes: 1,
		Ranks: []wire.RankAsk{{Rank: 4, Local: 0, GPUs: []int{0, 1}}, {Rank: 5, Local: 1, GPUs: []int{2, 3}}}, ReserveSec: 20}
}

func TestNothingRunsBeforeGo(t *testing.T) {
	n := &fakeNode{}
	l := begin(t, n)
	o := order(t, wire.GangReserve, "#!/bin/sh\necho rank $RANK of job $JOB on $CUDA_VISIBLE_DEVICES, local $LOCAL_RANK of $LOCAL_WORLD_SIZE\ntouch ran.$RANK\n")
	o.Env = []string{"JOB=12"}
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangReady || s.Serial != 7 || s.Node != "gpu001" || s.BootID != "b1" {
		t.Fatalf("%+v, want ready on certificate 7", s)
	}
	time.Sleep(50 * time.Millisecond)
	if ran, _ := filepath.Glob(filepath.Join(o.Dir, "ran.*")); len(ran) > 0 {
		t.Fatalf("%v ran before GO", ran)
	}
	if got := l.Jobs(); !slices.Equal(got, []int64{12}) {
		t.Errorf("jobs %v while reserved, want 12", got)
	}
	o.Phase = wire.GangGo
	l.Want([]wire.GangOrder{o})
	s := next(t, l)
	if s.Phase == wire.GangRunning {
		s = next(t, l)
	}
	if s.Phase != wire.GangExited || s.Lost || !slices.Equal(s.Exits, []wire.RankExit{{Rank: 4}, {Rank: 5}}) {
		t.Fatalf("%+v, want both ranks ended with 0", s)
	}
	var text string
	for _, out := range s.Output {
		text += out.Text
	}
	for _, want := range []string{"rank 4 of job 12 on 0,1, local 0 of 2\n", "rank 5 of job 12 on 2,3, local 1 of 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("output %q lacks %q", text, want)
		}
	}
	eventually(t, "the epilog", func() bool { return slices.Equal(n.left(), []int64{12}) })
	l.Want(nil)
	if got := l.Jobs(); len(got) > 0 {
		t.Errorf("jobs %v after the end", got)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited in vain for " + what)
}

func TestANodeThatFailsItsCheckIsRefused(t *testing.T) {
	n := &fakeNode{bad: "xid 79 GPU 3 off the bus"}
	l := begin(t, n)
	l.Want([]wire.GangOrder{order(t, wire.GangReserve, "touch ran")})
	if s := next(t, l); s.Phase != wire.GangRefused || s.Reason != n.bad {
		t.Fatalf("%+v, want refused", s)
	}
}

// An old reservation is dropped, and a GO that comes after starts nothing.
func TestALateGoStartsNothing(t *testing.T) {
	n := &fakeNode{}
	l := begin(t, n)
	o := order(t, wire.GangReserve, "touch ran")
	o.ReserveSec = 0.1
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangReady {
		t.Fatalf("%+v, want ready", s)
	}
	if s := next(t, l); s.Phase != wire.GangExited || s.Lost || !strings.Contains(s.Reason, "no GO within") {
		t.Fatalf("%+v, want the reservation dropped", s)
	}
	o.Phase = wire.GangGo
	l.Want([]wire.GangOrder{o})
	time.Sleep(100 * time.Millisecond)
	if _, err := os.Stat(filepath.Join(o.Dir, "ran")); err == nil {
		t.Error("it ran after the reservation was dropped")
	}
}

// An agent that was started anew while its ranks ran has lost them, and starts none again.
func TestAGoForAnUnknownLaunchIsALoss(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangGo, "touch ran")
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangExited || !s.Lost {
		t.Fatalf("%+v, want the ranks lost", s)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "ran")); err == nil {
		t.Error("it ran without a check")
	}
}

// A rank that ends badly ends the others of its node; one that ignores SIGTERM is killed, with what it started.
func TestAFailedRankEndsTheOthers(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, `#!/bin/sh
if [ $RANK = 5 ]; then until [ -s child ]; do sleep 0.01; done; echo broken >&2; exit 3; fi
trap '' TERM
sleep 1000 & echo $! > child; wait
`)
	goes(t, l, &o)
	s := next(t, l)
	if s.Phase == wire.GangRunning {
		s = next(t, l)
	}
	if !slices.Equal(s.Exits, []wire.RankExit{{Rank: 4, Code: 128 + 9}, {Rank: 5, Code: 3}}) {
		t.Errorf("exits %+v, want killed and 3", s.Exits)
	}
	if len(s.Output) == 0 || s.Output[0].Rank != 5 || s.Output[0].Text != "broken\n" {
		t.Errorf("output %+v, want what the failed rank wrote", s.Output)
	}
	gone(t, filepath.Join(o.Dir, "child"))
}

// gone waits until the process whose number is in the file is gone.
func gone(t *testing.T, file string) {
	t.Helper()
	pid, err := os.ReadFile(file)
	if err != nil || len(pid) == 0 {
		return // it was ended before it had a child, or before it could write its number
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the rank's child", func() bool { return !runs(n) })
}

func TestStopEndsWhatRuns(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, "#!/bin/sh\nsleep 1000 & echo $! > child.$RANK; wait\n")
	goes(t, l, &o)
	if s := next(t, l); s.Phase != wire.GangRunning {
		t.Fatalf("%+v, want running", s)
	}
	o.Phase = wire.GangStop
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangExited || len(s.Exits) != 2 || s.Exits[0].Code != 128+15 {
		t.Fatalf("%+v, want both ended by SIGTERM", s)
	}
	gone(t, filepath.Join(o.Dir, "child.4"))
}

// A check that takes for ever is cut short by the order to stop.
func TestStopDuringTheCheck(t *testing.T) {
	l := begin(t, &fakeNode{hang: true})
	o := order(t, wire.GangReserve, "touch ran")
	l.Want([]wire.GangOrder{o})
	o.Phase = wire.GangStop
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangExited || s.Lost {
		t.Fatalf("%+v, want exited", s)
	}
}

// Who leads now has not heard what the last leader was told.
func TestRepeat(t *testing.T) {
	l := begin(t, &fakeNode{})
	l.Want([]wire.GangOrder{order(t, wire.GangReserve, "true")})
	first := next(t, l)
	l.Repeat()
	if again := next(t, l); again.Phase != first.Phase || again.Launch != first.Launch {
		t.Errorf("repeated %+v, want %+v", again, first)
	}
}

func TestOutputFile(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, "echo here is rank $RANK")
	o.Output = "%x-%j.%t.out"
	goes(t, l, &o)
	s := next(t, l)
	if s.Phase == wire.GangRunning {
		s = next(t, l)
	}
	got, err := os.ReadFile(filepath.Join(o.Dir, "train-12.5.out"))
	if err != nil || string(got) != "here is rank 5\n" {
		t.Errorf("%q, %v; status %+v", got, err, s)
	}
}

// Opening an output file ends a thread. The kernel's death signal follows the thread that started a process: ranks that were
// started before must not get it.
func TestOutputFilesKillNoRank(t *testing.T) {
	for range 20 {
		l := begin(t, &fakeNode{})
		o := order(t, wire.GangReserve, "sleep 0.05")
		for i := range 6 {
			o.Ranks = append(o.Ranks, wire.RankAsk{Rank: 6 + i, Local: 2 + i})
		}
		o.Output = "%t.out"
		goes(t, l, &o)
		s := next(t, l)
		if s.Phase == wire.GangRunning {
			s = next(t, l)
		}
		for _, e := range s.Exits {
			if e.Code != 0 {
				t.Fatalf("rank %d ended with %d", e.Rank, e.Code)
			}
		}
		if len(s.Exits) != 8 {
			t.Fatalf("%+v, want eight exits", s)
		}
	}
}

// A job's output file is opened with its user's rights, not with the agent's.
func TestOutputFileIsTheUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := login("nobody")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := a.openAs(filepath.Join(dir, "out")); err == nil {
		f.Close()
		t.Error("nobody could write into root's folder")
	}
	if f, err := os.Create(filepath.Join(dir, "mine")); err != nil {
		t.Errorf("the agent itself lost its rights: %v", err)
	} else {
		f.Close()
	}
}

func TestUnknownUserIsALoss(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, "true")
	o.User = "nobody-of-that-name"
	goes(t, l, &o)
	if s := next(t, l); !s.Lost || !strings.Contains(s.Reason, "nobody-of-that-name") {
		t.Errorf("%+v, want a loss that names the user", s)
	}
}
