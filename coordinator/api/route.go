package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A call is one request whose caller is known and allowed.
type call struct {
	s   *Server
	w   http.ResponseWriter
	r   *http.Request
	who caller
	ctx context.Context
	rt  route
}

// A route is one path and method: who may call it, how long it may take, and what it does. A nil answer is a 204;
// written tells that the handler has answered by itself.
type route struct {
	pattern string
	kind    authority.Kind // for a machine of this kind; with no role either, for anyone
	role    authority.Role // for people of this role or more
	admins  []string       // those of its verbs that need an admin
	wait    time.Duration  // 0: no limit, a stream
	do      func(s *Server, c call) (answer any, err error)

	anywhere bool // answered by a host that does not lead, too
}

type writtenType struct{}

var written = writtenType{}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range slices.Concat(agentRoutes, operatorRoutes, enrolRoutes, jobRoutes, ruleRoutes, s.moreRoutes()) {
		mux.Handle(rt.pattern, s.serve(rt))
	}
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("GET "+PathSchema, s.schema)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.readyz)
	return problems(mux)
}

// moreRoutes are those of what a backend may lack.
func (s *Server) moreRoutes() (more []route) {
	if s.backend.Casework != nil {
		more = append(more, caseRoutes...)
	}
	if s.backend.Repairs != nil {
		more = append(more, repairRoutes...)
	}
	if s.backend.Keys != nil {
		more = append(more, keyRoutes...)
	}
	if s.backend.Auditor != nil {
		more = append(more, auditRoutes...)
	}
	if s.backend.Drills != nil {
		more = append(more, drillRoutes...)
	}
	return more
}

// problems answers a path or method that no route has with a Problem instead of ServeMux's plain text.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		rec := &headerOnly{header: http.Header{}}
		mux.ServeHTTP(rec, r) // 404, 405 or a redirect to a cleaned path: take its status and headers only
		for _, k := range []string{"Allow", "Location"} {
			if v := rec.header.Get(k); v != "" {
				w.Header().Set(k, v)
			}
		}
		if rec.status < 400 {
			w.WriteHeader(rec.status)
			return
		}
		writeProblem(w, problemOf(Errorf(rec.status, "%.8s %.100q: no such endpoint", r.Method, r.URL.Path)))
	})
}

type headerOnly struct {
	header http.Header
	status int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) WriteHeader(status int)      { h.status = status }
func (h *headerOnly) Write(b []byte) (int, error) { return len(b), nil }

// readyz is ready once a leader is known: a follower without one cannot even send agents on.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if url, mine, _ := s.backend.Leadership.Leader(); url == "" && !mine {
		writeProblem(w, problemOf(Errorf(http.StatusServiceUnavailable, "no leader is known")))
		return
	}
	io.WriteString(w, "ok\n")
}

// serve checks caller and leadership, calls the route, and writes its answer or problem.
func (s *Server) serve(rt route) http.Handler {
	statuses := sync.Map{} // status → counter, so that a heartbeat looks no label up
	count := func(status int) {
		c, ok := statuses.Load(status)
		if !ok {
			c, _ = statuses.LoadOrStore(status, s.metrics.requests.WithLabelValues(rt.pattern, strconv.Itoa(status)))
		}
		c.(interface{ Inc() }).Inc()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := callerOf(r)
		answer, err := s.admit(rt, w, r, who)
		if err != nil {
			p := problemOf(err)
			if p.Status == http.StatusMisdirectedRequest {
				p.Leader, _, _ = s.backend.Leadership.Leader()
			}
			if p.Status >= 500 {
				s.log.Error("request not answered", "route", rt.pattern, "caller", who.name, "status", p.Status, "err", err)
			}
			count(p.Status)
			writeProblem(w, p)
			return
		}
		switch answer {
		case nil:
			count(http.StatusNoContent)
			w.WriteHeader(http.StatusNoContent)
		case written:
			count(http.StatusOK)
		default:
			s.published(rt, "answer", shapes[rt.pattern].answer, reflect.TypeOf(answer))
			count(s.writeJSON(w, answer))
		}
	})
}

func (s *Server) admit(rt route, w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	if want := rt.caller(); want != authority.Nobody && who.kind != want {
		return nil, refuse(want, who)
	}
	if url, mine, _ := s.backend.Leadership.Leader(); !mine && !rt.anywhere {
		if url == "" {
			return nil, Errorf(http.StatusServiceUnavailable, "no leader is known at present").With("an election takes a few seconds; try again")
		}
		return nil, Errorf(http.StatusMisdirectedRequest, "this control host does not lead").With("the leader is " + url)
	}
	if need := rt.needs(r); rt.role != authority.RoleNone && !who.role.Covers(need) {
		return nil, s.refuseRole(r, who, need)
	}
	ctx := r.Context()
	if rt.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rt.wait)
		defer cancel()
	}
	ctx, err := rt.withKey(ctx, r, who)
	if err != nil {
		return nil, err
	}
	answer, err := rt.do(s, call{s: s, w: w, r: r, who: who, ctx: ctx, rt: rt})
	if _, again := Repeated(ctx); again && err == nil {
		w.Header().Set(wire.RepeatedHeader, "true")
	}
	return answer, err
}

func (s *Server) writeJSON(w http.ResponseWriter, answer any) int {
	body, err := json.Marshal(answer)
	if err != nil {
		s.log.Error("answer not encoded", "err", err)
		writeProblem(w, problemOf(Errorf(http.StatusInternalServerError, "the answer could not be encoded")))
		return http.StatusInternalServerError
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.Write(append(body, '\n')) // the client may be gone: there is nobody to tell
	return http.StatusOK
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// decode reads a body of at most limit bytes into v. Agents may be newer than we are, so their unknown fields are
// skipped; an operator's unknown field is a mistake and is refused.
func decode(c call, limit int64, strict bool, v any) error {
	c.s.published(c.rt, "body", shapes[c.rt.pattern].body, reflect.TypeOf(v).Elem())
	rc := http.NewResponseController(c.w)
	rc.SetReadDeadline(time.Now().Add(readBody)) // not every listener has deadlines; the wait bounds those
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= maxBody {
			buffers.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, limit)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return Errorf(http.StatusBadRequest, "read the body: %v", err)
	}
	rc.SetReadDeadline(time.Time{})
	if o := OnceOf(c.ctx); o != nil {
		o.sum.Write(buf.Bytes())
	}
	if !strict {
		if err := json.Unmarshal(buf.Bytes(), v); err != nil {
			return Errorf(http.StatusBadRequest, "the body is not what this endpoint reads: %v", err)
		}
		return nil
	}
	dec := json.NewDecoder(buf)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return Errorf(http.StatusBadRequest, "the body is not what this endpoint reads: %v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Errorf(http.StatusBadRequest, "the body goes on after its JSON value")
	}
	return nil
}

// published tells of a body or an answer that is not what the schema says. It is a fault of ours, and no reason not to answer.
func (s *Server) published(rt route, what string, want any, got reflect.Type) {
	if reflect.TypeOf(want) != got {
		s.log.Error("not as the schema says", "route", rt.pattern, "part", what, "type", got.String())
	}
}

func (s *Server) schema(w http.ResponseWriter, _ *http.Request) {
	body, err := Schema()
	if err != nil {
		writeProblem(w, problemOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) // the client may be gone: there is nobody to tell
}

// nodeName is the {node} of the path, checked.
func nodeName(r *http.Request) (string, error) {
	name := r.PathValue("node")
	if !authority.ValidName(name) {
		return "", Errorf(http.StatusBadRequest, "%.80q is no node name", name)
	}
	return name, nil
}

// flag reads a boolean query parameter; absent is false.
func flag(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, Errorf(http.StatusBadRequest, "%s=%.40q: want true or false", name, text)
	}
	return v, nil
}
