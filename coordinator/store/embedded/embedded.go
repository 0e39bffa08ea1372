// Package embedded runs an etcd member inside the process: the only one, for control planes of one host, or one of those
// of several hosts.
//
// Clients reach it only through a unix socket in its own directory, which belongs to its user alone: who can write to
// the store owns the fleet. It opens a network port for its peers alone, and only where it is to have some. Every
// acknowledged write is on disk (fsync) before it is acknowledged.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Raft's clock. With one member nobody is waited for, so the numbers only decide how long a start takes (up to two
// election timeouts) and what idling costs (a wakeup each tick). Among several a busy host must not cost the lead; a
// second is etcd's own choice.
const (
	tick         = 100 * time.Millisecond
	election     = 500 * time.Millisecond
	electionMany = time.Second
)

const (
	quota       = 8 << 30     // bytes; etcd's own advice for the most
	retention   = "1h"        // how long old revisions are kept
	keptEntries = 100         // raft entries kept in memory for members that lag, where there are none
	slow        = time.Second // a request that takes longer is worth a warning
	defragFrom  = 64          // MiB free in the database file that make a start defragment it
	socketName  = "etcd.sock"
	maxSockPath = 107 // sockaddr_un.sun_path holds 108 bytes with the final NUL
)

// Config says where the server keeps its data and how it is reached.
type Config struct {
	Dir    string       // made with mode 0700 if it is not there; locked while the server runs
	Name   string       // the member's name; default "assayd"
	Listen string       // default "unix": a socket in Dir; or "host:port" with a loopback host, port 0 for any
	Quota  int64        // bytes that the database may have; default 8 GiB, etcd's own advice for the most
	Peer   *Peer        // nil: the only member, which no other reaches
	Logger *slog.Logger // gets warnings and errors; default slog.Default
}

// A Server is a running etcd.
type Server struct {
	Endpoints []string // where clients reach it

	etcd    *embed.Etcd
	lock    *os.File
	closing atomic.Bool
	tmp     string // directory to remove when the socket could not be in Dir
}

// Start starts etcd on cfg.Dir and returns when it serves, or with a *[LockedError] when another process has the
// directory. So who has a Server knows that no other process serves this data.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Name == "" {
		cfg.Name = "assayd"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("etcd directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcd directory: %w", err)
	}
	s := &Server{}
	if s.lock, err = lockDir(ctx, dir); err != nil {
		return nil, err
	}
	client, err := s.clientURL(dir, cfg.Listen)
	if err != nil {
		s.lock.Close()
		return nil, err
	}
	etcd := config(dir, cfg.Name, client, &slogCore{log: cfg.Logger.With("part", "etcd"), closing: &s.closing})
	if cfg.Quota > 0 {
		etcd.QuotaBackendBytes = cfg.Quota
	}
	if cfg.Peer != nil {
		if err := cfg.Peer.into(etcd); err != nil {
			s.release()
			return nil, err
		}
	}
	if s.etcd, err = startEtcd(etcd); err != nil {
		s.release()
		return nil, &DataError{Dir: dir, Err: err}
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err = <-s.etcd.Err():
	case <-s.etcd.Server.StopNotify():
		err = s.why(errors.New("it stopped while starting"))
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("etcd in %s: %w", dir, err)
	}
	if client.Scheme == "unix" {
		s.Endpoints = []string{"unix://" + client.Path}
	} else {
		s.Endpoints = []string{"http://" + s.etcd.Clients[0].Addr().String()}
	}
	return s, nil
}

// startEtcd is embed.StartEtcd with an error where that panics: on a disk that is full, on data that cannot be read.
func startEtcd(cfg *embed.Config) (e *embed.Etcd, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return embed.StartEtcd(cfg)
}

// A DataError says that etcd does not start on its directory.
type DataError struct {
	Dir string
	Err error
}

func (e *DataError) Error() string { return fmt.Sprintf("etcd in %s: %v", e.Dir, e.Err) }
func (e *DataError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *DataError) Hint() string {
	return "make room on the disk of " + e.Dir + ", or restore it from a backup; it holds the fleet's state and authority, so keep what is there"
}

// Stopped blocks until the server has stopped by itself, and says why with a *[StoppedError]; or until ctx ends or Close
// is called, and gives nil. Nothing is stored any more after the one, so the process has to end.
func (s *Server) Stopped(ctx context.Context) error {
	why := errors.New("it stopped by itself; its own log lines above say why")
	select {
	case err := <-s.etcd.Err():
		if err != nil {
			why = err
		}
	case <-s.etcd.Server.StopNotify():
	case <-ctx.Done():
		return nil
	}
	if s.closing.Load() {
		return nil
	}
	return &StoppedError{Dir: s.etcd.Config().Dir, Err: s.why(why)}
}

// A StoppedError says that a running etcd came to its end without being asked to.
type StoppedError struct {
	Dir string
	Err error
}

func (e *StoppedError) Error() string { return fmt.Sprintf("etcd in %s has stopped: %v", e.Dir, e.Err) }
func (e *StoppedError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *StoppedError) Hint() string {
	return "start assayd again, as systemd does; when it comes back at once, look at the disk of " + e.Dir + " and at the lines above"
}

// Close stops the server: it ends the calls under way and gives the directory free. A second Close does nothing.
func (s *Server) Close() {
	if s.closing.Swap(true) {
		return
	}
	s.etcd.Close()
	s.release()
}

func (s *Server) release() {
	if s.tmp != "" {
		os.RemoveAll(s.tmp)
	}
	s.lock.Close()
}

// clientURL says where to listen. A unix socket whose path would be too long for the kernel gets a private directory
// among the temporary files.
func (s *Server) clientURL(dir, listen string) (url.URL, error) {
	if listen != "" && listen != "unix" {
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			return url.URL{}, fmt.Errorf("etcd address: %w", err)
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return url.URL{}, fmt.Errorf("etcd address %s: an embedded etcd has no access control, so it listens on a loopback address or a unix socket only", listen)
		}
		return url.URL{Scheme: "http", Host: listen}, nil
	}
	path := filepath.Join(dir, socketName)
	if len(path) > maxSockPath {
		tmp, err := os.MkdirTemp("", "assayd-etcd-")
		if err != nil {
			return url.URL{}, fmt.Errorf("etcd socket: %w", err)
		}
		s.tmp, path = tmp, filepath.Join(tmp, socketName)
	}
	return url.URL{Scheme: "unix", Path: path}, nil
}

func config(dir, name string, client url.URL, log zapcore.Core) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir = name, dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// Nobody listens there: a member must have a peer address, and one member never uses it.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(name)
	c.TickMs, c.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	c.QuotaBackendBytes = quota
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, retention
	c.BootstrapDefragThresholdMegabytes = defragFrom
	c.SnapshotCatchUpEntries = keptEntries
	c.EnableGRPCGateway = false
	c.WarningApplyDuration, c.WarningUnaryRequestDuration = slow, slow
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(log))
	return c
}
