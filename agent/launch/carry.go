package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// carry takes one launch through its phases.
func (l *Launcher) carry(ctx context.Context, x *launch, o wire.GangOrder) {
	if o.Phase != wire.GangReserve {
		// This process never checked the node for it, so it starts nothing; what an earlier process started died with that.
		l.say(x, wire.GangStatus{Phase: wire.GangExited, Lost: o.Phase == wire.GangGo, Reason: "its agent was started anew"})
		return
	}
	cctx, cancel := context.WithTimeout(ctx, reserveFor(o))
	defer cancel()
	go func() { // a check that nobody waits for any more is cut short
		select {
		case <-x.stops:
			cancel()
		case <-cctx.Done():
		}
	}()
	ok, why, serial := l.cfg.Agent.Check(cctx, o)
	if busy := l.occupied(o); ok && busy != "" {
		ok, why = false, busy
	}
	switch {
	case stopped(x):
		l.say(x, wire.GangStatus{Phase: wire.GangExited})
		l.leave(o)
		return
	case !ok:
		l.say(x, wire.GangStatus{Phase: wire.GangRefused, Reason: why, Serial: serial})
		return
	}
	l.say(x, wire.GangStatus{Phase: wire.GangReady, Serial: serial})
	drop := time.NewTimer(reserveFor(o))
	defer drop.Stop()
	select {
	case <-x.goes:
	case <-x.stops:
		l.say(x, wire.GangStatus{Phase: wire.GangExited})
		l.leave(o)
		return
	case <-drop.C:
		l.say(x, wire.GangStatus{Phase: wire.GangExited, Reason: fmt.Sprintf("no GO within %s", reserveFor(o))})
		l.leave(o)
		return
	case <-ctx.Done():
		l.leave(o)
		return
	}
	l.ranks(ctx, x, o)
	l.leave(o)
}

// leave is the epilog. The agent may be stopping: it still gets its time.
func (l *Launcher) leave(o wire.GangOrder) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), 30*time.Second)
	defer cancel()
	l.cfg.Agent.Ended(ctx, o)
}

func reserveFor(o wire.GangOrder) time.Duration {
	if o.ReserveSec <= 0 {
		return 30 * time.Second
	}
	return time.Duration(o.ReserveSec * float64(time.Second))
}

func stopped(x *launch) bool {
	select {
	case <-x.stops:
		return true
	default:
		return false
	}
}

// ranks starts the processes, waits for the last of them, and says how they ended. When one cannot be started none runs.
func (l *Launcher) ranks(ctx context.Context, x *launch, o wire.GangOrder) {
	who, err := login(o.User)
	if err == nil {
		err = os.MkdirAll(l.cfg.Dir, 0o711)
	}
	var script string
	if err == nil {
		script, err = l.script(o, who)
	}
	if err != nil {
		l.say(x, wire.GangStatus{Phase: wire.GangExited, Lost: true, Reason: err.Error()})
		return
	}
	defer os.Remove(script)
	var started []*rank
	for _, r := range o.Ranks {
		p, err := l.start(o, r, script, who)
		if err != nil {
			l.endAll(started)
			l.say(x, wire.GangStatus{Phase: wire.GangExited, Lost: true, Reason: err.Error()})
			return
		}
		started = append(started, p)
	}
	l.say(x, wire.GangStatus{Phase: wire.GangRunning})
	done, failed := make(chan struct{}), make(chan struct{}, len(started))
	var all sync.WaitGroup
	for _, r := range started {
		all.Go(func() {
			<-r.done
			if r.code != 0 {
				failed <- struct{}{}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-failed: // the gang cannot go on without it; the others of this node need not wait to be told
		l.endAll(started)
	case <-x.stops:
		l.endAll(started)
	case <-ctx.Done():
		l.endAll(started)
		return // the control plane learns of it when this node's agent is back, or stays away
	}
	<-done
	s := wire.GangStatus{Phase: wire.GangExited}
	for _, r := range started {
		s.Exits = append(s.Exits, wire.RankExit{Rank: r.ask.Rank, Code: r.code})
	}
	s.Output = outputs(started)
	l.say(x, s)
}

// script writes the job's script where its user may read it and nobody else.
func (l *Launcher) script(o wire.GangOrder, who account) (string, error) {
	path := filepath.Join(l.cfg.Dir, "job-"+o.Launch)
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(o.Script), 0o500); err != nil {
		return "", fmt.Errorf("write the script: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, int(who.uid), int(who.gid)); err != nil {
			return "", fmt.Errorf("hand the script to %s: %w", o.User, err)
		}
	}
	return path, nil
}

// emptied makes dir, with nothing in it.
func emptied(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o711)
}
