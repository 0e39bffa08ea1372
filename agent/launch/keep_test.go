package launch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// keeper is this test itself, told by its environment and first argument.
var keeper = []string{os.Args[0], "keep"}

// TestMain is a keeper, or an agent that does nothing but launch, when asked to be.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "keep":
		fmt.Fprintln(os.Stderr, Keep(os.Args[2]))
		os.Exit(125)
	case len(os.Args) > 3 && os.Args[1] == "agent":
		l := New(Config{Node: "gpu001", BootID: func() (string, error) { return "b1", nil }, Dir: os.Args[2], Keeper: keeper, Agent: &fakeNode{}, Log: slog.New(slog.DiscardHandler)})
		o := wire.GangOrder{Launch: "12.1", Job: 12, Phase: wire.GangReserve, User: os.Args[4], Script: os.Args[3], Nodes: 1, ReserveSec: 20, Ranks: []wire.RankAsk{{Rank: 0}}}
		l.Want([]wire.GangOrder{o})
		go func() {
			_, _ = l.NextStatus(context.Background())
			o.Phase = wire.GangGo
			l.Want([]wire.GangOrder{o})
		}()
		_ = l.Run(context.Background())
	}
	os.Exit(m.Run())
}

// A family is a script that leaves processes in every way: in its group, in a session of its own below a parent that has
// ended, and itself. Each writes its number into a file, and ignores what can be ignored.
func family(dir, end string) string {
	member := func(name string) string {
		return fmt.Sprintf(`sh -c 'trap "" TERM HUP INT; echo $$ > %[1]s/%[2]s.new; mv %[1]s/%[2]s.new %[1]s/%[2]s; while :; do sleep 0.05; done' >/dev/null 2>&1 &`, dir, name)
	}
	return "#!/bin/sh\n" + member("child") + "\nsetsid sh -c '" + strings.ReplaceAll("( "+member("away")+" )", "'", `'\''`) + "'\n" +
		"while [ ! -e " + dir + "/child ] || [ ! -e " + dir + "/away ]; do sleep 0.01; done\n" + end + "\n"
}

// pids waits for the family and gives its numbers.
func pids(t *testing.T, dir string, names ...string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, n := range names {
		eventually(t, n+" to start", func() bool {
			b, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				return false
			}
			out[n], err = strconv.Atoi(strings.TrimSpace(string(b)))
			return err == nil
		})
	}
	return out
}

// runs reports whether a process is there and has not ended.
func runs(pid int) bool {
	_, alive := tether.Parent(pid)
	return alive
}

// killKeepers kills the keepers of the ranks below m, and nothing else.
func killKeepers(m mark) {
	for _, pid := range marked(m) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(b), strings.Join(keeper, "\x00")) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestNothingOutlivesItsRank(t *testing.T) {
	for _, tt := range []struct {
		name, end string
		code      int
	}{{"well", "exit 0", 0}, {"badly", "exit 3", 3}, {"by a signal", "kill -SEGV $$", 139}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := begin(t, &fakeNode{})
			o := order(t, wire.GangReserve, family(dir, tt.end))
			o.Ranks = o.Ranks[:1]
			goes(t, l, &o)
			s := next(t, l)
			if s.Phase == wire.GangRunning {
				s = next(t, l)
			}
			if s.Phase != wire.GangExited || len(s.Exits) != 1 || s.Exits[0].Code != tt.code {
				t.Errorf("%+v, want exit status %d", s, tt.code)
			}
			for name, pid := range pids(t, dir, "child", "away") {
				if runs(pid) {
					t.Errorf("%s still runs after the job's end was told", name)
				}
			}
		})
	}
}

func TestStopEndsTheWholeFamily(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, family(dir, "trap '' TERM; while :; do sleep 0.05; done"))
	o.Ranks = o.Ranks[:1]
	goes(t, l, &o)
	next(t, l)
	family := pids(t, dir, "child", "away")
	o.Phase = wire.GangStop
	l.Want([]wire.GangOrder{o})
	if s := next(t, l); s.Phase != wire.GangExited {
		t.Fatalf("%+v, want exited", s)
	}
	for name, pid := range family {
		if runs(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}

// An agent that is killed takes its ranks with it, and an agent that is killed together with its keepers leaves what the next
// one ends before it says a word.
func TestAKilledAgentLeavesNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		keepers bool
	}{{"the agent alone", false}, {"the agent and its keepers", true}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			launches := filepath.Join(dir, "launch")
			agent := exec.Command(os.Args[0], "agent", launches, family(dir, "while :; do sleep 0.05; done"), me(t))
			agent.Stderr = os.Stderr
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			family := pids(t, dir, "child", "away")
			if tt.keepers {
				killKeepers(mark(launches))
			}
			_ = agent.Process.Kill()
			_ = agent.Wait()
			if tt.keepers {
				if !runs(family["away"]) {
					t.Error("nothing was left: this test tests nothing")
				}
				l := New(Config{Node: "gpu001", BootID: func() (string, error) { return "b1", nil }, Dir: launches, Keeper: keeper, Agent: &fakeNode{}, Log: slog.New(slog.DiscardHandler)})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- l.Run(ctx) }()
				defer func() { cancel(); <-done }()
				l.Want([]wire.GangOrder{{Launch: "12.1", Job: 12, Phase: wire.GangGo, ReserveSec: 20}})
				if s := next(t, l); s.Phase != wire.GangExited || !s.Lost {
					t.Fatalf("%+v, want a loss", s)
				}
			}
			for name, pid := range family {
				if tt.keepers && runs(pid) {
					t.Errorf("%s still runs after the loss was told", name)
				}
				eventually(t, name+" to end", func() bool { return !runs(pid) })
			}
		})
	}
}

func TestAKilledKeeperLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, family(dir, "while :; do sleep 0.05; done"))
	o.Ranks = o.Ranks[:1]
	goes(t, l, &o)
	next(t, l)
	family := pids(t, dir, "child", "away")
	killKeepers(l.mark(o.Launch, o.Ranks[0].Rank))
	if s := next(t, l); s.Phase != wire.GangExited || s.Exits[0].Code != 128+int(syscall.SIGKILL) {
		t.Fatalf("%+v, want the rank's end by a kill", s)
	}
	for name, pid := range family {
		if runs(pid) {
			t.Errorf("%s still runs", name)
		}
	}
}

func TestWhatCannotStartIsTold(t *testing.T) {
	l := begin(t, &fakeNode{})
	o := order(t, wire.GangReserve, "#!/nowhere/at-all\n")
	goes(t, l, &o)
	if s := next(t, l); s.Phase != wire.GangExited || !s.Lost || !strings.Contains(s.Reason, "no such file") {
		t.Fatalf("%+v, want a loss that says no such file", s)
	}
	time.Sleep(10 * time.Millisecond)
	if left := marked(mark(l.cfg.Dir)); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
}

// A gang is not started on a GPU on which an earlier job's processes have not ended, whatever the control plane believes.
func TestAnOccupiedGPUIsRefused(t *testing.T) {
	l := begin(t, &fakeNode{})
	l.cfg.Grace = time.Second
	first := order(t, wire.GangReserve, "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.05; done\n")
	first.GPUIndices, first.Ranks = []int{0, 1}, first.Ranks[:1]
	goes(t, l, &first)
	next(t, l)
	ask := func(launch string, gpus ...int) wire.GangStatus {
		o := order(t, wire.GangReserve, "#!/bin/sh\n")
		o.Launch, o.Job, o.GPUIndices = launch, 13, gpus
		l.Want([]wire.GangOrder{o}) // the first is no longer wanted, and does not listen
		return next(t, l)
	}
	if s := ask("13.1", 1, 2); s.Phase != wire.GangRefused || !strings.Contains(s.Reason, "job 12 have not ended on GPU 1") {
		t.Errorf("%+v, want a refusal that names job and GPU", s)
	}
	if s := ask("13.2", 2, 3); s.Phase != wire.GangReady {
		t.Errorf("%+v, want ready: those GPUs are free", s)
	}
	if s := next(t, l); s.Phase != wire.GangExited || s.Launch != first.Launch && s.Launch != "13.2" {
		t.Errorf("%+v, want the end of the first", s)
	}
	eventually(t, "the GPU to be free", func() bool { return l.occupied(wire.GangOrder{Launch: "13.3", GPUIndices: []int{1}}) == "" })
}
