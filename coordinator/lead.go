package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A lead is one term of leadership: the state, the loop that alone changes it, and those who carry out effects.
type lead struct {
	cfg     Config
	term    *store.Term
	metrics *api.Metrics
	log     *slog.Logger
	auth    *authority.Authority
	ring    atomic.Pointer[keyring]
	started time.Time // when this term began to lead: silence before it proves nothing

	requests chan request
	kick     chan struct{} // effects may have come

	mu      sync.RWMutex
	st      *state
	wakeMu  sync.Mutex               // guards wakes among readers; whoever holds mu for writing is alone
	wakes   map[string]chan struct{} // by node: closed when its desired state changes
	history []wire.HistoryEntry      // kept, oldest first
	news    chan struct{}            // closed when history grows

	beats    beats
	seen     reportIDs
	shows    shows
	hearings map[string]*hearing // by launch; the apply loop's own
	gate     *entrance           // for jobs; the apply loop's own; nil: to be made
	changes  changes
	outlooks outlooks

	gen      generation // as stored; the apply loop's own after the start
	kept     kept       // of evidence
	rotating sync.Mutex // held while the signing key changes

	peersMu sync.Mutex
	peers   *http.Client         // made when first needed
	rested  map[string]time.Time // other control hosts that failed: until when they are left alone

	sl    Slurm // nil: no Slurm
	slurm *slurmView
}

// A request is a piece of work for the apply loop: it changes a transaction, or says why not.
type request struct {
	do   func(*tx) error
	done chan error
}

// batchMost bounds how many requests are taken at once. The etcd limit on operations bounds what shares a transaction: 42 gangs
// that are reserved, with three operations each, so that three such are full.
const batchMost = 126

// run starts what a term needs and waits for its end.
func (l *lead) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.loop(ctx) })
	g.Go(func() error { return l.keepTime(ctx) })
	g.Go(func() error { return l.learn(ctx) })
	g.Go(func() error { return l.carryPages(ctx) })
	g.Go(func() error { return l.carryPower(ctx) })
	g.Go(func() error { return l.mend(ctx) })
	g.Go(func() error { return l.tellTickets(ctx) })
	g.Go(func() error { return l.carrySlurm(ctx) })
	g.Go(func() error { l.cfg.Store.CompactEvery(ctx, 5*time.Minute); return context.Cause(ctx) })
	if l.cfg.Slurm != nil {
		g.Go(func() error { return l.reconcile(ctx) })
	} else {
		g.Go(func() error { return l.schedule(ctx) })
	}
	return g.Wait()
}

// hand hands work to the apply loop and waits until it is durable.
func (l *lead) hand(ctx context.Context, f func(*tx) error) error {
	r := request{do: f, done: make(chan error, 1)}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.term.Done():
		return errDeposed
	}
	select {
	case err := <-r.done:
		return err
	case <-l.term.Done():
		// The loop may have committed it or not; whoever asked finds out by asking the next leader again.
		return errDeposed
	}
}

// loop is the only writer. It takes what is waiting, gathers it into one transaction and commits.
func (l *lead) loop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case first := <-l.requests:
			batch := []request{first}
			for len(batch) < batchMost {
				select {
				case r := <-l.requests:
					batch = append(batch, r)
					continue
				default:
				}
				break
			}
			if err := l.applyBatch(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// applyBatch applies the requests in order. Those that fail leave no trace and do not hinder the others. The error
// returned ends the term.
func (l *lead) applyBatch(ctx context.Context, batch []request) error {
	for len(batch) > 0 {
		start := time.Now()
		t := l.st.begin(l.env(), leaderTime(start, l.st.counters.Time))
		var taken []request
		for len(batch) > 0 {
			r := batch[0]
			trial := t.clone()
			if err := r.do(trial); err != nil {
				r.done <- err
				batch = batch[1:]
				continue
			}
			if len(taken) > 0 && trial.size() > store.MaxOps {
				break // the rest goes into the next transaction
			}
			t, taken, batch = trial, append(taken, r), batch[1:]
		}
		err := l.commit(ctx, t)
		if err != nil && l.term.Valid() && len(taken) > 1 {
			// One of them asks for too much: the others must not suffer for it.
			for _, r := range taken {
				if err := l.applyBatch(ctx, []request{r}); err != nil {
					return err
				}
			}
			continue
		}
		for _, r := range taken {
			r.done <- err
		}
		l.metrics.Applied(time.Since(start))
		if err != nil && !l.term.Valid() {
			return err
		}
	}
	return nil
}

// commit writes a transaction through and makes it the state.
func (l *lead) commit(ctx context.Context, t *tx) error {
	if t.empty() {
		return nil
	}
	moments := t.moments()
	here(moments, "before")
	rev, err := l.term.Commit(ctx, t.ops())
	if err != nil {
		l.log.Error("commit", "term", l.term.Number(), "err", err)
		var big *store.TooBigError
		switch {
		case errors.Is(err, store.ErrDeposed):
			return errDeposed
		case errors.As(err, &big):
			return &invalidError{err.Error(), big.Hint()} // sending it again would not help
		}
		return err
	}
	here(moments, "after")
	for _, step := range t.refused() {
		l.metrics.GuardRefused(step)
	}
	l.mu.Lock()
	relearned := len(t.relearnedNodes()) > 0
	t.publish(l.gen.Base + uint64(rev))
	for name := range t.woken {
		l.wakeLocked(name)
	}
	if relearned || t.governed {
		for name := range l.wakes {
			l.wakeLocked(name)
		}
	}
	if len(t.history) > 0 {
		l.history = append(l.history, t.history...)
		if over := len(l.history) - historyKept; over > historyKept/10 {
			l.history = append([]wire.HistoryEntry(nil), l.history[over:]...)
		}
		close(l.news)
		l.news = make(chan struct{})
	}
	l.mu.Unlock()
	if t.ruled {
		l.gate = nil
	}
	l.gate.settle(t)
	for id, x := range t.launches {
		if x == nil {
			delete(l.hearings, id)
		}
	}
	if l.cfg.Slurm == nil {
		l.changes.note(t) // where Slurm schedules nobody takes them
	}
	for _, h := range t.history {
		l.log.Info("applied", "node", h.Node, "event", h.Event, "from", h.From, "to", h.To, "case", h.Case, "by", h.By)
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
	return nil
}

func (l *lead) env() env {
	return env{
		term: l.term.Number(), slurm: l.cfg.Slurm != nil,
		sign: func(c certificate.Certificate) certificate.Certificate {
			key := l.ring.Load().current
			signed, err := certificate.Sign(c, key.ID, key.Priv)
			if err != nil {
				panic(fmt.Sprintf("coordinator: signing key %s: %v", key.ID, err)) // checked when it was loaded
			}
			return signed
		},
		newID:    l.newCaseID,
		timeline: l.timeline,
	}
}

// timeline is what history keeps of a case. The caller is the apply loop, or holds l.mu.
func (l *lead) timeline(id string) []wire.HistoryEntry {
	return filter(l.history, func(h wire.HistoryEntry) bool { return h.Case == id })
}

// caseLetters has no letter or digit that is read as another.
const caseLetters = "ABCDEFGHJKMNPQRSTVWXYZ23456789"

// newCaseID draws an id such as Q-7F3K that no kept case has.
func (l *lead) newCaseID() string {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails: package crypto/rand
		id := []byte("Q-")
		for _, x := range b {
			id = append(id, caseLetters[int(x)%len(caseLetters)])
		}
		if _, taken := l.st.cases[string(id)]; !taken {
			return string(id)
		}
	}
}

func (l *lead) wakeLocked(node string) {
	if ch, ok := l.wakes[node]; ok {
		close(ch)
		delete(l.wakes, node)
	}
}
