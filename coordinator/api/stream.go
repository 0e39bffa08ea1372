package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// stream sends the node's desired state, whole at once and after each change, one JSON value a line. One goroutine
// serves it: the wait for a change ends at the keepalive at the latest.
func (s *Server) stream(c call) (any, error) {
	ctx, end, err := s.streams.begin(c.ctx, c.who.name)
	if err != nil {
		return nil, err
	}
	defer end()
	out := newLines(c.w)
	var have uint64
	for {
		d, err := s.nextDesired(ctx, c.who.name, have)
		switch {
		case err == nil && d.Node != c.who.name:
			return out.ended(Errorf(http.StatusInternalServerError, "desired state of %s came for %s", d.Node, c.who.name))
		case err == nil:
			have = d.Version
			err = out.write(d)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			err = out.blank()
		}
		if err != nil {
			return out.ended(err)
		}
	}
}

func (s *Server) nextDesired(ctx context.Context, node string, have uint64) (wire.Desired, error) {
	ctx, cancel := context.WithTimeout(ctx, s.keepalive)
	defer cancel()
	return s.backend.Agents.Desired(ctx, node, have)
}

// events sends history entries after a cursor, or the last few, of all nodes or of some, one a line, and goes on with
// follow: then with every entry, so that the reader's cursor moves on.
func (s *Server) events(c call) (any, error) {
	q, err := eventsQuery(c.r)
	if err != nil {
		return nil, err
	}
	ctx, end, err := s.streams.begin(c.ctx, "")
	if err != nil {
		return nil, err
	}
	defer end()
	out := newLines(c.w)
	after := q.after
	if q.last >= 0 {
		// One more than asked for, so that with last=0 there is a cursor to follow from. Nobody knows how far back the last
		// few of some nodes lie: then all that is kept.
		n := q.last + 1
		if len(q.nodes) > 0 {
			n = math.MaxInt
		}
		es, err := s.backend.History.Last(ctx, n)
		if err != nil {
			return nil, err
		}
		if len(es) > 0 {
			after = es[len(es)-1].Cursor
		}
		if len(q.nodes) > 0 {
			es = slices.DeleteFunc(es, func(e wire.HistoryEntry) bool { return !slices.Contains(q.nodes, e.Node) })
		}
		for _, e := range es[max(0, len(es)-q.last):] {
			if err := out.write(e); err != nil {
				return out.ended(err)
			}
		}
		if !q.follow {
			return out.ended(nil)
		}
	}
	for {
		es, err := s.nextEntries(ctx, after, q.follow)
		if q.follow && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			if err := out.blank(); err != nil {
				return out.ended(err)
			}
			continue
		}
		if err != nil {
			return out.ended(err)
		}
		for _, e := range es {
			if err := out.write(e); err != nil {
				return out.ended(err)
			}
			after = e.Cursor
		}
		if len(es) == 0 && !q.follow {
			return out.ended(nil)
		}
	}
}

// page is how many entries are asked of the history at once.
const page = 500

func (s *Server) nextEntries(ctx context.Context, after string, wait bool) ([]wire.HistoryEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.keepalive)
	defer cancel()
	return s.backend.History.Entries(ctx, after, page, wait)
}

// lines writes JSON values, one a line, each sent at once.
type lines struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	started bool
}

func newLines(w http.ResponseWriter) *lines {
	return &lines{w: w, rc: http.NewResponseController(w)}
}

func (l *lines) start() {
	if l.started {
		return
	}
	l.started = true
	h := l.w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
}

func (l *lines) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.send(append(b, '\n'))
}

func (l *lines) blank() error { return l.send([]byte{'\n'}) }

func (l *lines) send(b []byte) error {
	l.start()
	l.rc.SetWriteDeadline(time.Now().Add(writeWait)) // a client that takes nothing loses its stream, not our memory
	if _, err := l.w.Write(b); err != nil {
		return err
	}
	return l.rc.Flush()
}

// ended is the handler's answer: the error as a Problem if nothing was sent yet, else the end of the stream.
func (l *lines) ended(err error) (any, error) {
	if !l.started && err != nil {
		return nil, err
	}
	l.start()
	return written, nil
}

// streams knows every open stream, so that they can be ended: all of them, or a node's old one when it connects anew.
type streams struct {
	mu     sync.Mutex
	open   map[*openStream]struct{}
	byNode map[string]*openStream
	gauge  prometheus.Gauge
	closed bool
}

type openStream struct{ cancel context.CancelFunc }

func newStreams(gauge prometheus.Gauge) *streams {
	return &streams{open: map[*openStream]struct{}{}, byNode: map[string]*openStream{}, gauge: gauge}
}

// begin registers a stream; node is empty for an operator's. A node has one stream at most: a second ends the first,
// which is most likely the rest of a broken connection.
func (s *streams) begin(ctx context.Context, node string) (context.Context, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	st := &openStream{cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		cancel()
		return nil, nil, Errorf(http.StatusServiceUnavailable, "this control host is stopping")
	}
	s.open[st] = struct{}{}
	if node != "" {
		if old := s.byNode[node]; old != nil {
			old.cancel()
		}
		s.byNode[node] = st
		s.gauge.Set(float64(len(s.byNode)))
	}
	return ctx, func() { s.end(st, node) }, nil
}

func (s *streams) end(st *openStream, node string) {
	st.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st)
	if node != "" && s.byNode[node] == st {
		delete(s.byNode, node)
		s.gauge.Set(float64(len(s.byNode)))
	}
}

func (s *streams) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.open {
		st.cancel()
	}
}

func (s *streams) closeAll() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancelAll()
}
