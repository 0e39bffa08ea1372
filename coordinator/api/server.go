package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
)

// Bounds on what a caller may cost.
const (
	maxReport  = 1 << 20  // bytes of a report, or of a permit with its report
	maxBody    = 64 << 10 // bytes of any other body
	maxHeader  = 16 << 10
	readBody   = 15 * time.Second // for a body to arrive
	readWait   = 10 * time.Second // for an answer from memory or one commit
	permitWait = 25 * time.Second // for a drain to stand in Slurm; agents wait less
	writeWait  = 30 * time.Second // for a client to take one message of a stream
)

// Keepalive is how often an idle stream carries an empty line, so that both ends notice a dead one.
const Keepalive = 15 * time.Second

// A Server answers the API on any number of listeners.
type Server struct {
	backend   Backend
	metrics   *Metrics
	log       *slog.Logger
	keepalive time.Duration
	limits    *limiter
	enrolling *bucket
	refusals  *limiter // of records of calls refused for want of a role, by caller
	streams   *streams
	handler   http.Handler

	mu      sync.Mutex
	servers []*http.Server
	closed  bool
}

// New makes a server over the backend. Metrics come from NewMetrics; log gets one line per refused or broken request
// that an operator should know of.
func New(b Backend, m *Metrics, log *slog.Logger) *Server {
	s := &Server{
		backend: b, metrics: m, log: log, keepalive: Keepalive,
		limits: newLimiter(50, 200), enrolling: newBucket(200, 2000), refusals: newLimiter(refusalRate, refusalBurst), streams: newStreams(m.connected),
	}
	s.handler = s.recovered(s.routes())
	return s
}

// Handler is the whole API, for tests and for callers with a listener of their own.
func (s *Server) Handler() http.Handler { return s.handler }

// ServeTLS answers on ln with HTTP/2 (and 1.1) over TLS until Shutdown. The configuration comes from
// authority.Authority.ServerTLS.
func (s *Server) ServeTLS(ln net.Listener, cfg *tls.Config) error {
	srv, err := s.server()
	if err != nil {
		return errors.Join(ended(err), ln.Close())
	}
	srv.TLSConfig = cfg
	return ended(srv.ServeTLS(ln, "", ""))
}

// ServeUnix answers operators on a unix socket until Shutdown. See ListenUnix for who may ask.
func (s *Server) ServeUnix(ln net.Listener) error {
	srv, err := s.server()
	if err != nil {
		return errors.Join(ended(err), ln.Close())
	}
	path := ln.Addr().String()
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, callerKey{}, peer(c, path))
	}
	return ended(srv.Serve(ln))
}

func (s *Server) server() (*http.Server, error) {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second, // the TLS handshake's too
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // scanners and hang-ups, mostly
		// Pings find agents that vanished without a word; their streams would stay open for ever.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 32, SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: writeWait},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, http.ErrServerClosed
	}
	s.servers = append(s.servers, srv)
	return srv, nil
}

// ended turns the end that Shutdown brings, also one that came before the first request, into no error.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown ends all streams, lets requests under way finish until ctx ends, and closes every listener.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	servers := s.servers
	s.closed = true
	s.mu.Unlock()
	s.streams.closeAll()
	var errs []error
	for _, srv := range servers {
		if err := srv.Shutdown(ctx); err != nil {
			errs = append(errs, err, srv.Close())
		}
	}
	return errors.Join(errs...)
}

// Resign ends all streams, as when this process stops leading: agents reconnect and find the new leader.
func (s *Server) Resign() { s.streams.cancelAll() }

// recovered answers 500 where a handler panics, and says where.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			s.log.Error("request handler panicked", "path", r.URL.Path, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			writeProblem(w, problemOf(Errorf(http.StatusInternalServerError, "the control plane met a fault of its own").With("see assayd's log")))
		}()
		next.ServeHTTP(w, r)
	})
}

// A caller is who asks, as far as TLS or the kernel vouches for it.
type caller struct {
	kind authority.Kind
	name string
	role authority.Role // of a person
	deny string         // why an unknown caller is unknown
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	if c, ok := r.Context().Value(callerKey{}).(caller); ok {
		return c
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return caller{deny: "no client certificate"}
	}
	cert := r.TLS.VerifiedChains[0][0]
	kind, name := authority.Identity(cert)
	if kind == authority.Nobody {
		return caller{deny: "the client certificate is neither a node's nor an operator's"}
	}
	return caller{kind: kind, name: name, role: authority.RoleOf(cert)}
}
