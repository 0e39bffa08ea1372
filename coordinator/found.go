package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/store"
)

// FoundAuthority loads the fleet's certificate authority, and makes it where the store has none: the members of an embedded
// etcd need certificates before the first of them serves.
func FoundAuthority(ctx context.Context, s *store.Store, name, fleet string, lease time.Duration) (*authority.Authority, error) {
	if m, ok, err := loadAuthority(ctx, s); err != nil || ok {
		return loadedAuthority(m, err)
	}
	term, err := s.Campaign(ctx, name, "", lease)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = term.Resign(context.WithoutCancel(ctx)) // it ends by itself otherwise
	}()
	m, ok, err := loadAuthority(ctx, s) // another may have been faster
	if err != nil || ok {
		return loadedAuthority(m, err)
	}
	if m, err = authority.New(fleet, time.Now()); err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	value, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, err := term.Commit(ctx, []store.Op{{Key: keyCA, Value: value}}); err != nil {
		return nil, fmt.Errorf("keep the certificate authority: %w", err)
	}
	return authority.Load(m)
}

// StoredAuthority loads the fleet's certificate authority from a store that has one.
func StoredAuthority(ctx context.Context, s *store.Store) (*authority.Authority, error) {
	m, ok, err := loadAuthority(ctx, s)
	if err == nil && !ok {
		return nil, fmt.Errorf("no certificate authority is stored: no assayd has led here yet")
	}
	return loadedAuthority(m, err)
}

func loadedAuthority(m authority.Material, err error) (*authority.Authority, error) {
	if err != nil {
		return nil, err
	}
	return authority.Load(m)
}
