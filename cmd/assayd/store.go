package main

import (
	"context"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

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
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if len(c.EtcdEndpoints) == 0 {
		if o.server, err = startEtcd(ctx, c, log); err != nil {
			return nil, err
		}
		cfg.Endpoints, o.alone = o.server.Endpoints, true
	}
	if o.store, err = store.Open(ctx, cfg); err != nil {
		return nil, err
	}
	if c.EtcdPeer != "" {
		o.alone, err = settled(ctx, c, o.store)
	}
	return o, err
}

// startEtcd starts the embedded etcd: alone, or as one of several; then it returns when this one votes.
func startEtcd(ctx context.Context, c config, log *slog.Logger) (*embedded.Server, error) {
	if c.EtcdPeer == "" {
		return embedded.Start(ctx, embedded.Config{Dir: c.etcdDir(), Name: "assayd", Logger: log})
	}
	srv, err := startMember(ctx, c, log)
	if err != nil {
		return nil, err
	}
	learner := srv.Learner()
	err = srv.Promote(ctx, func(why error) {
		log.Info("not promoted yet", "applied", srv.Applied(), "err", why)
		_, _ = daemon.SdNotify(false, "STATUS=catching up with the other control hosts\nEXTEND_TIMEOUT_USEC=60000000")
	})
	if err != nil {
		srv.Close()
		return nil, err
	}
	if learner {
		log.Info("this control host has joined", "applied", srv.Applied())
	}
	return srv, nil
}

// startMember starts the embedded etcd as one that has peers, or may get some. It may have no vote yet.
func startMember(ctx context.Context, c config, log *slog.Logger) (*embedded.Server, error) {
	peer := c.peer()
	in, err := c.joinedBy()
	if err != nil {
		return nil, err
	}
	if in != nil {
		peer.Others = in.Members
	} else if err := founded(ctx, c, log); err != nil {
		return nil, err
	}
	return embedded.Start(ctx, embedded.Config{Dir: c.etcdDir(), Name: c.Name, Peer: peer, Logger: log})
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
