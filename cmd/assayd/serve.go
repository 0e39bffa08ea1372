package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/assay-gpu/assay/coordinator"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/cases"
	"github.com/assay-gpu/assay/coordinator/slurm"
	"github.com/assay-gpu/assay/scheduler/topo"
)

func serveCommand() *cobra.Command {
	var file string
	flags := defaults()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the control plane",
		Long: `serve runs the control plane in the foreground: the store (an embedded etcd unless --etcd-endpoints is given), the
election among its peers, the apply loop, the API and the socket for operators of this host.`,
		Example: `  assayd serve --config /etc/assay/assayd.yaml
  assayd serve --etcd-endpoints https://etcd1:2379,https://etcd2:2379,https://etcd3:2379 --etcd-ca /etc/assay/etcd-ca.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(file, cmd.Flags())
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, newLogger(c))
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "config file")
	flags.bind(cmd.Flags())
	return cmd
}

func configCommand() *cobra.Command {
	var file string
	flags := defaults()
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check the configuration and print it as it would be used",
		Example: "  assayd config --config /etc/assay/assayd.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(file, cmd.Flags())
			if err != nil {
				return err
			}
			if _, err := c.readPolicy(); err != nil {
				return err
			}
			b, err := yaml.Marshal(c)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(b)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "config file")
	flags.bind(cmd.Flags())
	return cmd
}

// serve runs until ctx ends or a part of it breaks.
func serve(ctx context.Context, c config, log *slog.Logger) error {
	pol, err := c.readPolicy()
	if err != nil {
		return err
	}
	o, err := openStore(ctx, c, log)
	if err != nil {
		return err
	}
	defer o.close()

	cfg := coordinator.Config{
		Name: c.Name, URL: c.Advertise, Peers: c.Peers, Fleet: c.Fleet, Store: o.store, OwnStore: o.server != nil, Alone: o.alone, Lease: c.Lease.D(), Policy: pol, Log: log,
		Metrics: func(snap func() api.Snapshot) *api.Metrics { return api.NewMetrics(version, snap) },
	}
	if c.WorkloadManager == "slurm" {
		cfg.Slurm = func(fence func() error) coordinator.Slurm { return slurmClient(c, fence, log) }
		cfg.Settle = settle(o.alone, c)
	}
	if cfg.Topology, err = topology(c.Topology); err != nil {
		return err
	}
	if c.PageWebhook != "" {
		cfg.Pager = &webhook{url: c.PageWebhook}
	}
	if len(c.PowerCycle) > 0 {
		cfg.Power = command(c.PowerCycle)
	}

	if c.RMAWebhook != "" {
		cfg.Tickets = append(cfg.Tickets, &webhook{url: c.RMAWebhook})
	}
	if len(c.RMAHook) > 0 {
		cfg.Tickets = append(cfg.Tickets, command(c.RMAHook))
	}
	if cfg.Evidence, err = cases.Open(filepath.Join(c.StateDir, "evidence")); err != nil {
		return err
	}

	var server *api.Server
	coord := coordinator.New(cfg, func() { server.Resign() })
	server = api.New(api.Backend{
		Agents: coord, Fleet: coord, Operators: coord, Enroller: coord, Policies: coord, Guarder: coord, History: coord, Leadership: coord, Jobs: coord, Rules: coord, Casework: coord, Repairs: coord, Keys: coord, Auditor: coord, Drills: coord,
	}, coord.Metrics(), log)

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return quiet(ctx, coord.Run(ctx)) })
	g.Go(func() error { return listen(ctx, c, coord, server, log) })
	g.Go(func() error { return reload(ctx, c, coord, log) })
	g.Go(func() error { return o.stopped(ctx) })
	g.Go(func() error { return renew(ctx, c, coord, log) })
	g.Go(func() error {
		<-ctx.Done()
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(stop)
	})
	return g.Wait()
}

// topology reads the site's topology.conf. One that Slurm would not take is refused whole; odd lines are told by topo check.
func topology(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("topology: %w", err)
	}
	if tree, faults := topo.Parse(string(data), nil); tree == nil {
		return "", fmt.Errorf("topology %s: %s", path, faults[0])
	}
	return string(data), nil
}

// quiet turns the end of ctx, which is how a stop is asked for, into no error.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// settle is how long a new leader waits before it acts: one lease and one scontrol deadline, so that nothing that the
// last leader began is still on its way. With an embedded etcd the lock on its directory shows that the last leader is
// dead, but not that its last scontrol is.
func settle(alone bool, c config) time.Duration {
	if alone {
		return c.SlurmDeadline.D()
	}
	return c.Lease.D() + c.SlurmDeadline.D()
}

func etcdTLS(c config) (*tls.Config, error) {
	if c.EtcdCA == "" && c.EtcdCert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.EtcdCA != "" {
		pem, err := os.ReadFile(c.EtcdCA)
		if err != nil {
			return nil, usageError{err}
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError{fmt.Errorf("etcd_ca %s: no PEM certificate in it", c.EtcdCA)}
		}
	}
	if c.EtcdCert != "" {
		pair, err := tls.LoadX509KeyPair(c.EtcdCert, c.EtcdKey)
		if err != nil {
			return nil, usageError{fmt.Errorf("etcd_cert %s: %w", c.EtcdCert, err)}
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}

func slurmClient(c config, fence func() error, log *slog.Logger) *slurm.Client {
	var env []string
	if c.SlurmConf != "" {
		env = append(env, "SLURM_CONF="+c.SlurmConf)
	}
	return slurm.New(slurm.Config{Scontrol: c.Scontrol, Squeue: c.Squeue, Deadline: c.SlurmDeadline.D(), Env: env, Fence: fence, Logger: log})
}

// listen serves the API once the authority stands, and tells systemd when it does.
func listen(ctx context.Context, c config, coord *coordinator.Coordinator, server *api.Server, log *slog.Logger) error {
	auth, err := coord.Authority(ctx)
	if err != nil {
		return quiet(ctx, err)
	}
	cfg, err := auth.ServerTLS(serverNames(c), 90*24*time.Hour)
	if err != nil {
		return fmt.Errorf("server certificate: %w", err)
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("API: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Socket), 0o755); err != nil {
		return err
	}
	sock, err := api.ListenUnix(ctx, c.Socket)
	if err != nil {
		return fmt.Errorf("operators' socket: %w", err)
	}
	log.Info("serving", "url", c.Advertise, "listen", tcp.Addr().String(), "socket", c.Socket, "workload_manager", c.WorkloadManager)
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.ServeTLS(tcp, cfg) })
	g.Go(func() error { return server.ServeUnix(sock) })
	g.Go(func() error { return watchdog(ctx, coord) })
	return g.Wait()
}

// watchdog tells systemd that this process lives and what it does, at half the interval that systemd asks for.
func watchdog(ctx context.Context, coord *coordinator.Coordinator) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		interval = 20 * time.Second
	}
	tick := time.NewTicker(interval / 2)
	defer tick.Stop()
	for {
		state := daemon.SdNotifyWatchdog
		if url, mine, term := coord.Leader(); mine {
			state += fmt.Sprintf("\nSTATUS=leading, term %d", term)
		} else {
			state += "\nSTATUS=following " + url
		}
		_, _ = daemon.SdNotify(false, state)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// serverNames are the names that the API's certificate is made for.
func serverNames(c config) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if u, err := url.Parse(c.Advertise); err == nil {
		names = append(names, u.Hostname())
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// reload puts a changed policy file in force on SIGHUP. A bad one is refused whole and the old one stays.
func reload(ctx context.Context, c config, coord *coordinator.Coordinator, log *slog.Logger) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var before []byte
	if c.Policy != "" {
		before, _ = os.ReadFile(c.Policy)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
		}
		p, err := c.readPolicy()
		if err != nil {
			log.Error("policy file refused; the policy in force is unchanged", "err", err)
			continue
		}
		now, _ := os.ReadFile(c.Policy)
		if p == nil || bytes.Equal(now, before) {
			log.Info("policy file unchanged")
			continue
		}
		in, err := coord.SetPolicy(ctx, "policy file", *p)
		if err != nil {
			log.Error("policy not put in force", "err", err)
			continue
		}
		before = now
		log.Info("policy in force", "version", in.Version)
	}
}
