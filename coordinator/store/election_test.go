package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/etcdtest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The leader dies by kill -9: another leads and has committed within one lease.
func TestLeaderKilled(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	for i := range 3 {
		leader := startChild(t, c.Endpoints[0], "/"+t.Name()+"/")
		if answer := leader.ask("campaign child"); !strings.HasPrefix(answer, "leading") {
			t.Fatal(answer)
		}
		leader.tell("loop n/child")
		time.Sleep(time.Duration(300*i+200) * time.Millisecond) // at different ages of the lease
		leader.signal(syscall.SIGKILL)
		killed := time.Now()
		term := lead(t, s, "heir")
		rev := commit(t, term, put("n/heir", fmt.Sprint(i)))
		took := time.Since(killed)
		t.Logf("led and committed %v after the kill", took)
		if took > lease {
			t.Errorf("took %v, over one lease of %v", took, lease)
		}
		// Every commit the dead leader heard of is there, and at most one more that it did not live to hear of.
		acknowledged := 0
		for line := range leader.lines {
			var n int
			var at int64
			if _, err := fmt.Sscanf(line, "%d applied %d", &n, &at); err != nil {
				t.Fatalf("child: %s", line)
			}
			if acknowledged = n; at >= rev {
				t.Errorf("the dead leader's commit %d at revision %d, after the heir's at %d", n, at, rev)
			}
		}
		got := contents(t, s, "n/")["n/child"]
		if got != fmt.Sprint(acknowledged) && got != fmt.Sprint(acknowledged+1) {
			t.Errorf("%d commits acknowledged, the last one in the store is %s", acknowledged, got)
		}
		t.Logf("%d commits acknowledged", acknowledged)
		if err := term.Resign(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// The leader is stopped for longer than its lease: when it goes on it knows that its term is over, and writes nothing.
func TestLeaderStopped(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	sleeper := startChild(t, c.Endpoints[0], "/"+t.Name()+"/")
	if answer := sleeper.ask("campaign sleeper"); !strings.HasPrefix(answer, "leading") {
		t.Fatal(answer)
	}
	if answer := sleeper.ask("commit n/a before"); !strings.HasPrefix(answer, "applied") {
		t.Fatal(answer)
	}
	equal(t, "before the stop", sleeper.ask("valid"), "true")
	sleeper.signal(syscall.SIGSTOP)
	stopped := time.Now()
	term := lead(t, s, "heir")
	commit(t, term, put("n/a", "heir"))
	if took := time.Since(stopped); took > lease {
		t.Errorf("another led after %v, over one lease of %v", took, lease)
	}
	sleeper.tell("valid") // the first thing it does when it wakes
	sleeper.tell("commit n/a after")
	time.Sleep(time.Second)
	sleeper.signal(syscall.SIGCONT)
	equal(t, "valid, on waking", receive(t, sleeper.lines, 10*time.Second, "answer"), "false")
	equal(t, "commit, on waking", receive(t, sleeper.lines, 10*time.Second, "answer"), store.ErrDeposed.Error())
	equal(t, "contents", contents(t, s, "n/"), map[string]string{"n/a": "heir"})
}

// The leader is stopped in the midst of commits: whatever was under way is before the heir's commits or nowhere,
// and the leader either knows which or says that it does not.
func TestLeaderStoppedWhileCommitting(t *testing.T) {
	slow(t)
	c := etcdtest.Start(t)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	for range 2 {
		sleeper := startChild(t, c.Endpoints[0], "/"+t.Name()+"/")
		sleeper.ask("campaign sleeper")
		sleeper.tell("loop n/sleeper")
		time.Sleep(250 * time.Millisecond)
		sleeper.signal(syscall.SIGSTOP)
		term := lead(t, s, "heir")
		rev := commit(t, term, put("n/heir", "x"))
		before, err := s.Get(t.Context(), "n/sleeper")
		if err != nil {
			t.Fatal(err)
		}
		sleeper.signal(syscall.SIGCONT)
		acknowledged, last := 0, ""
		for last == "" {
			line := receive(t, sleeper.lines, 10*time.Second, "the sleeper's last word")
			number, answer, _ := strings.Cut(line, " ")
			var at int64
			if _, err := fmt.Sscanf(answer, "applied %d", &at); err != nil {
				last = answer
			} else if _, err := fmt.Sscan(number, &acknowledged); err != nil || at >= rev {
				t.Fatalf("%s, and the heir led at revision %d", line, rev)
			}
		}
		// The commit under way was done before the stop, or its answer was lost in it.
		var want []string
		if last == store.ErrDeposed.Error() {
			want = []string{fmt.Sprint(acknowledged)}
		} else if strings.Contains(last, "outcome unknown when the term ended") {
			want = []string{fmt.Sprint(acknowledged), fmt.Sprint(acknowledged + 1)}
		} else {
			t.Errorf("the sleeper's last word: %s", last)
		}
		after, err := s.Get(t.Context(), "n/sleeper")
		if err != nil || after.ModRevision != before.ModRevision || !slices.Contains(want, string(after.Value)) {
			t.Errorf("%d acknowledged, then %s; the store has %s of revision %d, and had revision %d before it woke (%v)",
				acknowledged, last, after.Value, after.ModRevision, before.ModRevision, err)
		}
		if err := term.Resign(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// Three members, and etcd's own leader is killed again and again: no acknowledged commit is lost, none is applied twice.
func TestMembersKilled(t *testing.T) {
	slow(t)
	c := etcdtest.StartN(t, 3)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	w := s.Watch(t.Context(), "n/", 1)
	var want []string
	term := lead(t, s, "a")
	killed := make(chan int)
	go func() {
		defer close(killed)
		for i := range 6 {
			m := c.Members[i%3]
			m.Kill()
			time.Sleep(500 * time.Millisecond)
			m.Start()
			c.WaitReady() // one at a time: the others are a quorum
			time.Sleep(500 * time.Millisecond)
		}
	}()
	unknown := map[string]bool{}
	for i, killing := 0, true; killing; i++ {
		select {
		case <-killed:
			killing = false
		default:
		}
		op := put("n/a", fmt.Sprint(i))
		_, err := term.Commit(context.Background(), []store.Op{op})
		switch {
		case err == nil:
			want = append(want, "n/a="+fmt.Sprint(i))
		case term.Valid():
			t.Logf("commit %d: %v", i, err) // certain: not applied
		default:
			t.Logf("commit %d: %v", i, err)
			if _, ok := err.(*store.AmbiguousError); ok {
				unknown["n/a="+fmt.Sprint(i)] = true
			}
			_ = term.Resign(context.Background()) // it may be unreachable; the lease runs out
			term = lead(t, s, "a")
		}
	}
	commit(t, term, put("n/z", "end"))
	var got []string
	for len(got) == 0 || got[len(got)-1] != "n/z=end" {
		for _, e := range next(t, w, 1) {
			if line := show([]store.Event{e}); !unknown[line] {
				got = append(got, line)
			}
		}
	}
	t.Logf("%d commits, %d unknown", len(want), len(unknown))
	equal(t, "every commit once, in order", strings.Join(got, " "), strings.Join(append(want, "n/z=end"), " "))
}

// One of three members stands still, not etcd's own leader: the term goes on and commits go through.
func TestMemberStandsStill(t *testing.T) {
	slow(t)
	c := etcdtest.StartN(t, 3)
	s := open(t, store.Config{Endpoints: c.Endpoints})
	term := lead(t, s, "a")
	for i, m := range c.Members {
		if leads(t, c.Endpoints[i]) {
			continue
		}
		m.Signal(syscall.SIGSTOP)
		for end, n := time.Now().Add(lease+time.Second), 0; time.Now().Before(end); n++ {
			commit(t, term, put("n/a", fmt.Sprint(n)))
		}
		m.Signal(syscall.SIGCONT)
		c.WaitReady()
	}
	if !term.Valid() {
		t.Errorf("the term ended: %v", term.Err())
	}
}

// leads reports whether the member is etcd's own leader.
func leads(t *testing.T, endpoint string) bool {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	status, err := client.Status(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return status.Leader == status.Header.MemberId
}
