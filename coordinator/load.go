package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// newLead reads the whole state and makes what a first start lacks: the authority, the signing key, the policy.
func newLead(ctx context.Context, cfg Config, m *api.Metrics, term *store.Term) (*lead, error) {
	l := &lead{
		cfg: cfg, term: term, metrics: m, log: cfg.Log, started: time.Now(),
		requests: make(chan request), kick: make(chan struct{}, 1),
		st: newState(), wakes: map[string]chan struct{}{}, news: make(chan struct{}), slurm: newSlurmView(),
		hearings: map[string]*hearing{}, changes: newChanges(),
	}
	l.ring.Store(&keyring{})
	if cfg.Slurm != nil {
		l.sl = cfg.Slurm(func() error {
			if !term.Valid() {
				return errDeposed
			}
			return nil
		})
	}
	entries, rev, err := cfg.Store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	for _, e := range entries {
		if err := l.load(e); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
	}
	l.st.expand()
	l.st.reindex()
	if l.gen.Schema > schema {
		return nil, &NewerDataError{l.gen.Schema, schema}
	}
	l.st.revision = l.gen.Base + uint64(rev)
	for name := range l.st.nodes {
		l.st.versions[name] = l.st.revision
	}
	if err := l.migrate(ctx); err != nil {
		return nil, err
	}
	return l, l.found(ctx)
}

// load takes one stored key into the state. Keys of the store itself and of later versions are left alone.
func (l *lead) load(e store.Entry) error {
	name := func(prefix string) string { return strings.TrimPrefix(e.Key, prefix) }
	if taken, err := l.st.loadRule(e); taken {
		return err
	}
	switch {
	case strings.HasPrefix(e.Key, keyNodes):
		return into(e, l.st.nodes, name(keyNodes), new(lifecycle.Node))
	case strings.HasPrefix(e.Key, keyCases):
		return into(e, l.st.cases, name(keyCases), new(wire.Case))
	case strings.HasPrefix(e.Key, keyOnce):
		return into(e, l.st.onces, name(keyOnce), new(once))
	case strings.HasPrefix(e.Key, keyEffects):
		return into(e, l.st.effects, name(keyEffects), new(pending))
	case strings.HasPrefix(e.Key, keyTickets):
		return into(e, l.st.tickets, name(keyTickets), new(rma.Ticket))
	case strings.HasPrefix(e.Key, keyHardware):
		return into(e, l.st.parts, name(keyHardware), new(rma.Part))
	case strings.HasPrefix(e.Key, keyTokens):
		return into(e, l.st.tokens, name(keyTokens), new(authority.TokenRecord))
	case strings.HasPrefix(e.Key, keyRefusals):
		return into(e, l.st.refusals, name(keyRefusals), new(refusal))
	case strings.HasPrefix(e.Key, keyReports):
		return into(e, l.st.reported, name(keyReports), new([]string))
	case strings.HasPrefix(e.Key, keyJobs), strings.HasPrefix(e.Key, keyScripts), strings.HasPrefix(e.Key, keyLogs), strings.HasPrefix(e.Key, keyGangs),
		strings.HasPrefix(e.Key, keyArrays):
		return l.st.loadJob(e)
	case strings.HasPrefix(e.Key, keyHistory):
		var h wire.HistoryEntry
		if err := json.Unmarshal(e.Value, &h); err != nil {
			return err
		}
		l.history = append(l.history, h)
	case strings.HasPrefix(e.Key, keySigning):
		var k signer
		if err := json.Unmarshal(e.Value, &k); err != nil {
			return err
		}
		l.loadKey(k)
		return nil
	case e.Key == keyGuard:
		return json.Unmarshal(e.Value, &l.st.guard)
	case e.Key == keyPolicy:
		p, err := policy.Read(e.Value)
		l.st.policy = p
		return err
	case e.Key == keyRollout:
		l.st.rollout = &rollout{}
		var whole struct {
			Policy json.RawMessage `json:"policy"`
		}
		if err := errors.Join(json.Unmarshal(e.Value, l.st.rollout), json.Unmarshal(e.Value, &whole)); err != nil {
			return err
		}
		p, err := policy.Read(whole.Policy)
		l.st.rollout.Policy = p
		return err
	case e.Key == keyGeneration:
		return json.Unmarshal(e.Value, &l.gen)
	case e.Key == keyLearned:
		return json.Unmarshal(e.Value, &l.st.learned)
	case e.Key == keyDrill:
		return json.Unmarshal(e.Value, &l.st.drill)
	case e.Key == keyCounters:
		return json.Unmarshal(e.Value, &l.st.counters)
	case e.Key == keyCA:
		var m authority.Material
		if err := json.Unmarshal(e.Value, &m); err != nil {
			return err
		}
		a, err := authority.Load(m)
		l.auth = a
		return err
	}
	return nil
}

func into[K comparable, T any](e store.Entry, m map[K]T, key K, v *T) error {
	if err := json.Unmarshal(e.Value, v); err != nil {
		return err
	}
	m[key] = *v
	return nil
}

// found makes what a first start lacks, in one transaction.
func (l *lead) found(ctx context.Context) error {
	t := l.st.begin(l.env(), leaderTime(time.Now(), l.st.counters.Time))
	if l.auth == nil {
		m, err := authority.New(l.cfg.Fleet, t.now)
		if err != nil {
			return fmt.Errorf("make the certificate authority: %w", err)
		}
		if l.auth, err = authority.Load(m); err != nil {
			return fmt.Errorf("make the certificate authority: %w", err)
		}
		t.put(keyCA, m)
	}
	if l.ring.Load().current.ID == "" {
		id, pub, priv, err := authority.NewSigningKey()
		if err != nil {
			return fmt.Errorf("make the signing key: %w", err)
		}
		k := signer{ID: id, Pub: pub, Priv: priv}
		l.loadKey(k)
		t.put(keySigning+id, k)
	}
	if t.policy.Version == 0 {
		p := policy.Default()
		if l.cfg.Policy != nil {
			p = *l.cfg.Policy
		}
		p.Version = 1
		t.policy, t.governed = p, true
		t.record(wire.HistoryEntry{Event: "policy version=1 mode=" + string(p.Mode), By: "assay"})
	}
	return l.commit(ctx, t)
}

// loadAuthority reads the authority's material; false when no leader has made it yet.
func loadAuthority(ctx context.Context, s *store.Store) (authority.Material, bool, error) {
	e, err := s.Get(ctx, keyCA)
	if err != nil || e.ModRevision == 0 {
		return authority.Material{}, false, err
	}
	var m authority.Material
	err = json.Unmarshal(e.Value, &m)
	return m, err == nil, err
}
