package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/control"
	"github.com/assay-gpu/assay/agent/identity"
	"github.com/assay-gpu/assay/agent/launch"
	"github.com/assay-gpu/assay/agent/metrics"
	"github.com/assay-gpu/assay/agent/socket"
	"github.com/assay-gpu/assay/agent/spool"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// The daemon's heap is small and mostly still; collecting early keeps it so.
const (
	gcPercent   = 50
	memoryLimit = 64 << 20
)

// stopTimeout bounds an orderly stop.
const stopTimeout = 5 * time.Second

func newRun() *cobra.Command {
	c := &cobra.Command{
		Use: "run", Short: "Run the daemon", Args: usageArgs(cobra.NoArgs),
		Long: "Run reads the GPUs and the kernel log, tells the control plane, and answers the hooks. systemd is told when it is ready\n" +
			"and that it lives (Type=notify, WatchdogSec).",
		Example: "  assay-agent run --config /etc/assay/agent.yaml\n  assay-agent run --sim /tmp/gpu001 --node gpu001 --run-dir /tmp/run --state-dir /tmp/state",
	}
	f := hardwareFlags(c)
	f.daemonFlags()
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := f.load()
		if err != nil {
			return err
		}
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
		return runDaemon(c.Context(), cfg, newLog(c.ErrOrStderr(), cfg.LogLevel))
	}
	return c
}

// errAnew ends one run so that the next takes up a changed identity.
var errAnew = errors.New("the identity has changed")

// runDaemon runs the agent until ctx ends. A boot of what simulates the node, or a new identity, starts it anew from disk, as
// a restart would.
func runDaemon(ctx context.Context, cfg config, log *slog.Logger) error {
	// What hangs in the driver must not hold up the stop: systemd kills what is left of the group.
	stopped := make(chan struct{})
	defer close(stopped)
	context.AfterFunc(ctx, func() {
		notify(log, daemon.SdNotifyStopping)
		select {
		case <-stopped:
		case <-time.After(stopTimeout):
			log.Error("stop took too long, ending at once")
			os.Exit(exitFault)
		}
	})
	for {
		err := runOnce(ctx, cfg, log)
		var booted *agent.BootChangedError
		switch {
		case errors.As(err, &booted):
			log.Warn("node has booted, starting anew", "from", booted.From, "to", booted.To)
		case errors.Is(err, errAnew):
			log.Info("identity has changed, starting anew")
		default:
			return err
		}
	}
}

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd not told", "err", err)
	}
}

// outbox is the spool as the agent sees it. Nobody waits for the routine reports of a node that is not enrolled.
type outbox struct {
	*spool.Spool
	enrolled bool
}

func (o outbox) Put(r checks.Report) error {
	if !o.enrolled && r.Routine() {
		return nil
	}
	return o.Spool.Put(r)
}

func (o outbox) Waiting() int { return o.Stats().Reports }

// runOnce makes the agent out of its parts and runs it.
func runOnce(ctx context.Context, cfg config, log *slog.Logger) (err error) {
	for _, d := range []struct {
		what, path string
		mode       fs.FileMode
	}{{"run directory", cfg.bootDir(), 0o755}, {"state directory", cfg.StateDir, 0o700}} {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
		release, err := claim(d.what, d.path)
		if err != nil {
			return err
		}
		defer release()
	}
	id, err := identity.Load(cfg.StateDir)
	enrolled := err == nil
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Info("node is not enrolled; hooks pass until it is")
	case err != nil:
		log.Error("identity is unreadable; going on without the control plane", "err", err)
	case id.Node != cfg.Node:
		return usage(fmt.Errorf("this node is enrolled as %s, but is to run as %s: enroll it again, or leave out --node", id.Node, cfg.Node))
	case time.Until(id.Ends) < 7*24*time.Hour:
		log.Warn("node's identity certificate ends soon; enroll the node again", "ends", id.Ends)
	}
	hw, err := openHardware(cfg, true, log)
	if err != nil {
		return err
	}
	defer hw.close()
	sp, err := spool.Open(filepath.Join(cfg.StateDir, "spool"), policy.Default().Agent.SpoolBytes)
	if err != nil {
		return err
	}
	defer func() {
		if ferr := sp.Flush(); ferr != nil {
			log.Error("unsent reports are lost with this process", "err", ferr)
		}
	}()
	var cl *control.Client
	var permit agent.Permitter
	var keeper agent.Keeper
	if enrolled {
		if cl, err = control.New(control.Config{
			URLs: id.URLs, TLS: id.TLS, Log: log, Learned: func(urls []string) error { return identity.Learn(cfg.StateDir, urls) },
		}); err != nil {
			return err
		}
		permit, keeper = cl, cl
	}
	gangs := &gangNode{}
	launcher := launch.New(launch.Config{Node: cfg.Node, BootID: bootIDFile(cfg.BootID), Dir: filepath.Join(cfg.bootDir(), "launch"), Keeper: selfCommand("probe", "rank"), Agent: gangs, Log: log})
	a, err := agent.New(agent.Config{
		Node: cfg.Node, Version: version, StateDir: cfg.StateDir, BootID: bootIDFile(cfg.BootID), Clock: bootClock, Prober: hw.prober, Asides: hw.asides(), Golden: hw.golden, Kernel: hw.kernel, Events: hw.events, Tree: hw.tree,
		DumpKernel: hw.dump, Outbox: outbox{sp, enrolled}, Permit: permit, Keeper: keeper, Runner: newRunner(cfg),
		Verify: func(g wire.GrantedCertificate, keys map[string][]byte) error {
			return certificate.Verify(g.Certificate, keys)
		},
		OnPolicy: hw.onPolicy, OnGangs: launcher.Want, Interval: cfg.Interval.D(), Log: log, Alive: func(status string) { notify(log, "WATCHDOG=1\nSTATUS="+status) }, AliveEvery: aliveEvery(),
	})
	if err != nil {
		return err
	}
	gangs.agent = a
	servers, err := listen(cfg, a, log)
	if err != nil {
		return err
	}
	return serve(ctx, cfg, parts{a, cl, sp, hw, servers, launcher, enrolled}, log)
}

// aliveEvery is a third of the watchdog's time, or as often as a status is worth showing.
func aliveEvery() time.Duration {
	if d, err := daemon.SdWatchdogEnabled(false); err == nil && d > 0 {
		return d / 3
	}
	return time.Minute
}

func newRunner(cfg config) agent.Runner {
	r := runner{node: cfg.Node, reset: cfg.ResetCommand, reboot: cfg.RebootCommand, report: cfg.ReportCommand, devices: "/dev/nvidia*", proc: "/proc"}
	if cfg.Sim != "" {
		r.devices = ""
	}
	return r
}

// listen takes the sockets: the one configured, or that of the node's name and the common one if it is free.
func listen(cfg config, a *agent.Agent, log *slog.Logger) ([]*socket.Server, error) {
	paths, optional := []string{cfg.Socket}, ""
	if cfg.Socket == "" {
		paths, optional = nil, filepath.Join(cfg.RunDir, "agent.sock")
		if cfg.nodeGiven {
			paths = []string{filepath.Join(cfg.RunDir, cfg.Node+".sock")}
		} else {
			paths, optional = []string{optional}, ""
		}
	}
	var servers []*socket.Server
	for _, p := range paths {
		s, err := socket.Listen(p, a, log)
		if err != nil {
			for _, s := range servers {
				s.Close()
			}
			return nil, err
		}
		servers = append(servers, s)
	}
	if optional != "" {
		s, err := socket.Listen(optional, a, log)
		switch {
		case err == nil:
			servers = append(servers, s)
		case !errors.Is(err, socket.ErrInUse):
			log.Warn("common socket not taken", "err", err)
		}
	}
	return servers, nil
}

// parts are what runs side by side.
type parts struct {
	agent    *agent.Agent
	control  *control.Client // nil when not enrolled
	spool    *spool.Spool
	hw       *hardware
	servers  []*socket.Server
	launcher *launch.Launcher
	enrolled bool
}

// serve runs the parts until ctx ends or one of them fails.
func serve(parent context.Context, cfg config, p parts, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, s := range p.servers {
		wg.Go(func() {
			if err := s.Serve(ctx); err != nil {
				cancel(err)
			}
		})
	}
	if cfg.MetricsListen != "" {
		wg.Go(func() {
			if err := serveMetrics(ctx, cfg.MetricsListen, p, log); err != nil {
				cancel(err)
			}
		})
	}
	if p.control != nil {
		wg.Go(func() { p.control.Run(ctx, p.agent, p.spool, p.agent, p.launcher) })
	}
	wg.Go(func() {
		if err := p.launcher.Run(ctx); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() { watchIdentity(ctx, cfg.StateDir, p, cancel) })
	log.Info("agent runs", "node", cfg.Node, "enrolled", p.enrolled)
	notify(log, daemon.SdNotifyReady)
	err := p.agent.Run(ctx)
	cancel(err)
	if err == nil && parent.Err() == nil {
		err = context.Cause(ctx)
	}
	return err
}

// watchIdentity starts the agent anew when the node is enrolled, or enrolled again, and keeps the spool to the policy's bound.
func watchIdentity(ctx context.Context, stateDir string, p parts, cancel context.CancelCauseFunc) {
	stamp := func() time.Time {
		st, err := os.Stat(filepath.Join(stateDir, "identity", "control.json"))
		if err != nil {
			return time.Time{}
		}
		return st.ModTime()
	}
	every, first := 10*time.Second, stamp()
	if !p.enrolled {
		every = time.Second
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.spool.SetLimit(p.agent.SpoolBytes())
			if now := stamp(); !now.IsZero() && !now.Equal(first) {
				cancel(errAnew)
				return
			}
		}
	}
}

// metricsAgain is how often an address for metrics that somebody else has is tried again.
const metricsAgain = 10 * time.Second

// serveMetrics answers Prometheus until ctx ends. An address that is taken stops no agent: without one, hooks pass every job
// unchecked.
func serveMetrics(ctx context.Context, addr string, p parts, log *slog.Logger) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	for said := false; errors.Is(err, syscall.EADDRINUSE); l, err = lc.Listen(ctx, "tcp", addr) {
		if !said {
			said = true
			log.Error("metrics are not served, all else is: free the address or change metrics_listen; it is tried again meanwhile", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(metricsAgain):
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	src := metrics.Sources{Agent: p.agent, Spool: p.spool.Stats, Malformed: p.hw.malformed, Probes: p.hw.probeStats}
	if p.control != nil {
		src.Connected = p.control.Connected
	} else {
		src.Connected = func() bool { return false }
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(src))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics not served", "err", err)
	}
	return nil
}
