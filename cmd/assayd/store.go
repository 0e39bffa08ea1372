package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

// An opened is the store that this process works on, and the embedded etcd under it, if there is one.
type opened struct {
	store  *store.Store
	server *embedded.Server // nil: an external etcd
	alone  bool             // no other process can reach the store
	log    *slog.Logger
}

// openStore opens the external etcd that the config names, or starts the embedded one.
func openStore(ctx context.Context, c config, log *slog.Logger) (o *opened, err error) {
	cfg := store.Config{Endpoints: c.EtcdEndpoints, Logger: log}
	o = &opened{log: log}
	if cfg.TLS, err = etcdTLS(c); err != nil {
		return nil, err
	}
	if len(c.EtcdEndpoints) == 0 {
		o.server, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(c.StateDir, "etcd"), Name: "assayd", Logger: log})
		if err != nil {
			return nil, err
		}
		cfg.Endpoints, o.alone = o.server.Endpoints, true
	}
	if o.store, err = store.Open(ctx, cfg); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// stopped blocks until ctx ends, or with an error until the embedded etcd is no more.
func (o *opened) stopped(ctx context.Context) error {
	if o.server == nil {
		<-ctx.Done()
		return nil
	}
	return o.server.Stopped(ctx)
}

func (o *opened) close() {
	if o.store != nil {
		if err := o.store.Close(); err != nil {
			o.log.Warn("store not closed cleanly", "err", err)
		}
	}
	if o.server != nil {
		o.server.Close()
	}
}
