// Package socket is where the hooks ask the agent. The protocol is text, so that the hook needs no parser: a line
// "ASSAY1 prolog", then NAME=VALUE lines, then an empty line; the answer is a line "0" or "1", the hook's exit status, text for
// its standard error, and an empty line. "ASSAY1 status" is answered with JSON in place of the text, up to the stream's end.
package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent"
)

// An Agent answers what is asked.
type Agent interface {
	Hook(ctx context.Context, r agent.HookRequest) agent.Reply
	Status(ctx context.Context) (agent.Status, error)
}

// Names are the environment variables that a hook passes on.
var Names = []string{
	"SLURMD_NODENAME", "SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_JOB_PARTITION", "SLURM_JOB_NUM_NODES",
	"SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_RESTART_COUNT",
	"SLURM_JOB_RESTART_COUNT", "SLURM_JOB_EXIT_CODE", "SLURM_JOB_EXIT_CODE2", "SLURM_SCRIPT_CONTEXT",
}

// Bounds on a request and on how many are served at once. The hook itself sends at most 4 KiB a value.
const (
	maxLine     = 8 << 10
	maxRequest  = 128 << 10
	maxConns    = 64
	readTimeout = 2 * time.Second
	sendTimeout = 2 * time.Second
)

// A Server listens on one path.
type Server struct {
	path     string
	listener *net.UnixListener
	lock     *os.File
	agent    Agent
	log      *slog.Logger
}

// ErrInUse says that another agent answers on the path.
var ErrInUse = errors.New("another agent answers there")

// Listen takes the path, for this process alone: a lock file beside it says who has it, so that a socket left by a dead
// agent is replaced and one of a live agent is not. The error is ErrInUse when another has it.
func Listen(path string, a Agent, log *slog.Logger) (*Server, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		lock.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	// The socket is made under another name and moved into place with its mode set: nobody meets it open to all.
	tmp := path + ".new"
	_ = os.Remove(tmp) // left by a crash, if at all
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmp, Net: "unix"})
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(tmp, 0o600); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		l.Close()
		lock.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return &Server{path: path, listener: l, lock: lock, agent: a, log: log}, nil
}

// Serve answers until ctx ends, then waits for the answers under way, which ctx's end cuts short.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.listener.Close() })
	defer stop()
	defer s.close()
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, maxConns)
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("socket %s: %w", s.path, err)
			}
			s.log.Warn("connection not accepted", "err", err) // out of file descriptors, most likely
			time.Sleep(50 * time.Millisecond)
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			defer c.Close()
			s.serve(ctx, c)
		})
	}
}

// Close gives up a server that is not being served.
func (s *Server) Close() { s.close() }

func (s *Server) close() {
	s.listener.Close()
	_ = os.Remove(s.path) // the next agent replaces one that is left
	s.lock.Close()
}

// serve answers one request. Only root and the user the agent runs as are heard.
func (s *Server) serve(ctx context.Context, c *net.UnixConn) {
	uid, err := peer(c)
	if err != nil || uid != 0 && uid != uint32(os.Geteuid()) {
		s.log.Warn("request refused", "uid", uid, "err", err)
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(readTimeout)) // fails only on a closed connection, which the read then finds
	verb, env, err := Read(c)
	if err != nil {
		s.log.Warn("request not understood", "err", err)
		return
	}
	exit, text := s.answer(ctx, verb, env)
	if verb != "status" {
		text += "\n" // the empty line that ends a hook's answer: it need not wait for the end of the stream
	}
	_ = c.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := fmt.Fprintf(c, "%d\n%s", exit, text); err != nil {
		s.log.Warn("answer not sent", "hook", verb, "err", err)
	}
}

func (s *Server) answer(ctx context.Context, verb string, env map[string]string) (int, string) {
	if verb == "status" {
		st, err := s.agent.Status(ctx)
		if err != nil {
			return 1, err.Error() + "\n"
		}
		data, err := json.Marshal(st)
		if err != nil {
			return 1, err.Error() + "\n"
		}
		return 0, string(data) + "\n"
	}
	r := s.agent.Hook(ctx, agent.NewHookRequest(agent.Hook(verb), env))
	if r.Message == "" {
		return r.Exit, ""
	}
	return r.Exit, strings.ReplaceAll(r.Message, "\n", " ") + "\n"
}

// A FormError says what is wrong with a request.
type FormError struct{ What string }

func (e *FormError) Error() string { return "request: " + e.What }

// Read reads one request. Unknown names are passed over, so that a newer hook may say more.
func Read(r io.Reader) (verb string, env map[string]string, err error) {
	br := bufio.NewReaderSize(io.LimitReader(r, maxRequest), maxLine)
	line := func() (string, error) {
		b, err := br.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return "", &FormError{"a line is too long"}
		case errors.Is(err, io.EOF):
			return "", &FormError{"it ends before its empty line"}
		case err != nil:
			return "", err
		}
		return strings.TrimSuffix(string(b), "\n"), nil
	}
	first, err := line()
	if err != nil {
		return "", nil, err
	}
	verb, ok := strings.CutPrefix(first, "ASSAY1 ")
	if !ok || !slices.Contains([]string{"prolog", "epilog", "healthcheck", "status"}, verb) {
		return "", nil, &FormError{"it does not begin with ASSAY1 and a known word"}
	}
	env = map[string]string{}
	for {
		l, err := line()
		if err != nil {
			return "", nil, err
		}
		if l == "" {
			return verb, env, nil
		}
		name, value, ok := strings.Cut(l, "=")
		if ok && slices.Contains(Names, name) {
			env[name] = value
		}
	}
}
