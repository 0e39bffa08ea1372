package api

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/cases"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// CaseNote is the verb that only writes a line in a case's timeline.
const CaseNote = "note"

// Casework keeps cases and their evidence.
type Casework interface {
	// OrderCase carries out take, give, note, extend or close.
	OrderCase(ctx context.Context, by, verb, id string, v wire.CaseVerb) (wire.Case, error)
	// KeepEvidence keeps a file that a node gathered for its open case. It returns once the file is on disk, on two control
	// hosts where there are two.
	KeepEvidence(ctx context.Context, node, id, name, sum string, r io.Reader) (wire.EvidenceKept, error)
	// Evidence opens a file, also one that only another control host has.
	Evidence(ctx context.Context, sum string) (io.ReadCloser, int64, error)
	// PutCopy and Copy are what control hosts ask of each other, leading or not. Of what is not there Copy returns fs.ErrNotExist.
	PutCopy(ctx context.Context, sum string, r io.Reader) error
	Copy(ctx context.Context, sum string) (io.ReadCloser, int64, error)
}

// evidenceWait bounds how long one file may take to arrive and be copied.
const evidenceWait = 2 * time.Minute

var caseRoutes = []route{
	{pattern: "POST " + wire.PathCases + "/{id}/{verb}", role: authority.RoleOperator, wait: readWait, do: (*Server).orderCase},
	{pattern: "GET " + wire.PathEvidence + "/{sum}", role: authority.RoleViewer, wait: evidenceWait, do: (*Server).evidence},
	{pattern: "PUT " + wire.PathKeep + "/{sum}", kind: authority.Node, wait: evidenceWait, do: (*Server).keepEvidence},
	{pattern: "PUT " + wire.PathPeer + "/{sum}", kind: authority.Control, wait: evidenceWait, anywhere: true, do: (*Server).putCopy},
	{pattern: "GET " + wire.PathPeer + "/{sum}", kind: authority.Control, wait: evidenceWait, anywhere: true, do: (*Server).copy},
}

func (s *Server) orderCase(c call) (any, error) {
	id, err := caseID(c.r)
	if err != nil {
		return nil, err
	}
	verb := c.r.PathValue("verb")
	switch verb {
	case lifecycle.CaseTake, lifecycle.CaseGive, lifecycle.CaseExtend, lifecycle.CaseClose, CaseNote:
	default:
		return nil, Errorf(http.StatusNotFound, "%.40q is no order on a case: take, give, note, extend and close are", verb)
	}
	var v wire.CaseVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, true); err != nil {
		return nil, err
	}
	if (verb == lifecycle.CaseExtend) == v.Until.IsZero() {
		return nil, Errorf(http.StatusBadRequest, "a time goes with extend, and with nothing else")
	}
	return s.backend.Casework.OrderCase(c.ctx, c.who.name, verb, id, v)
}

func caseID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if !token(id) || len(id) > 40 {
		return "", Errorf(http.StatusBadRequest, "%.80q is no case id; they look like Q-7F3K", id)
	}
	return id, nil
}

func evidenceSum(c call) (string, error) {
	sum := c.r.PathValue("sum")
	if !cases.ValidSum(sum) {
		return "", Errorf(http.StatusBadRequest, "%.80q is no SHA-256: 64 hex digits, lower case", sum)
	}
	return sum, nil
}

func (s *Server) keepEvidence(c call) (any, error) {
	if err := s.room(c); err != nil {
		return nil, err
	}
	sum, err := evidenceSum(c)
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	id, name := q.Get("case"), q.Get("name")
	if !token(id) || !token(name) {
		return nil, Errorf(http.StatusBadRequest, "case=%.40q name=%.80q: want a case's id and the file's name", id, name)
	}
	return s.backend.Casework.KeepEvidence(c.ctx, c.who.name, id, name, sum, body(c))
}

// body is the request's body as it comes, bounded in size and time.
func body(c call) io.Reader {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(evidenceWait)) // not every listener has deadlines; the wait bounds those
	return http.MaxBytesReader(c.w, c.r.Body, cases.MaxFile)
}

func (s *Server) evidence(c call) (any, error) { return s.file(c, s.backend.Casework.Evidence) }
func (s *Server) copy(c call) (any, error)     { return s.file(c, s.backend.Casework.Copy) }

func (s *Server) putCopy(c call) (any, error) {
	sum, err := evidenceSum(c)
	if err != nil {
		return nil, err
	}
	return nil, s.backend.Casework.PutCopy(c.ctx, sum, body(c))
}

// file answers with a file of evidence. HEAD requests come here too, and get its length alone.
func (s *Server) file(c call, open func(context.Context, string) (io.ReadCloser, int64, error)) (any, error) {
	sum, err := evidenceSum(c)
	if err != nil {
		return nil, err
	}
	f, size, err := open(c.ctx, sum)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Cache-Control", "private, immutable")
	if c.r.Method != http.MethodHead {
		if _, err := io.Copy(c.w, f); err != nil {
			s.log.Debug("evidence not sent whole", "err", err) // the client sees it from the length
		}
	}
	return written, nil
}
