package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

var jobRoutes = []route{
	{pattern: "GET " + wire.PathJobs, role: authority.RoleViewer, wait: readWait, do: (*Server).jobs},
	{pattern: "POST " + wire.PathJobs, role: authority.RoleUser, wait: readWait, do: (*Server).submitJob},
	{pattern: "POST " + wire.PathJobs + "/plan", role: authority.RoleViewer, wait: readWait, do: (*Server).planJob},
	{pattern: "POST " + wire.PathJobs + "/batch", role: authority.RoleUser, wait: batchWait, do: (*Server).submitBatch},
	{pattern: "GET " + wire.PathJobs + "/{id}", role: authority.RoleViewer, wait: readWait, do: (*Server).oneJob},
	{pattern: "GET " + wire.PathJobs + "/{id}/logs", role: authority.RoleViewer, wait: readWait, do: (*Server).jobLogs},
	{pattern: "POST " + wire.PathJobs + "/{id}/{verb}", role: authority.RoleUser, wait: readWait, do: (*Server).orderJob},
}

// gang takes a node's word on a launch.
func (s *Server) gang(c call) (any, error) {
	var g wire.GangStatus
	if err := s.room(c); err != nil {
		return nil, err
	}
	if err := decode(c, maxReport, false, &g); err != nil {
		return nil, err
	}
	if err := own(c, g.Node); err != nil {
		return nil, err
	}
	if !token(g.Launch) || len(g.Launch) > 40 {
		return nil, Errorf(http.StatusBadRequest, "launch status: %.80q is no launch's id", g.Launch)
	}
	return nil, s.backend.Agents.GangStatus(c.ctx, g)
}

func (s *Server) jobs(c call) (any, error) {
	all, err := flag(c.r, "all")
	if err != nil {
		return nil, err
	}
	js, err := s.backend.Jobs.Jobs(c.ctx, all)
	return listed(c, js, err, func(j wire.Job) string { return fmt.Sprintf("%019d", j.ID) })
}

func (s *Server) submitJob(c call) (any, error) {
	var ask wire.JobAsk
	if err := decode(c, maxReport, true, &ask); err != nil {
		return nil, err
	}
	if err := s.mayAsk(c, ask.Nice); err != nil {
		return nil, err
	}
	return s.backend.Jobs.SubmitJob(c.ctx, c.who.name, ask)
}

func (s *Server) planJob(c call) (any, error) {
	var ask wire.JobAsk
	if err := decode(c, maxReport, true, &ask); err != nil {
		return nil, err
	}
	return s.backend.Jobs.PlanJob(c.ctx, c.who.name, ask, c.r.URL.Query().Get("keep") == "true")
}

// Bounds of a batch: its scripts and environments are in it once each.
const (
	maxBatch  = 16 << 20
	batchWait = time.Minute
)

func (s *Server) submitBatch(c call) (any, error) {
	var b wire.Batch
	if err := decode(c, maxBatch, true, &b); err != nil {
		return nil, err
	}
	if len(b.Jobs) > wire.BatchMost {
		return nil, Errorf(http.StatusBadRequest, "a batch of %d jobs: at most %d in one request", len(b.Jobs), wire.BatchMost)
	}
	for _, j := range b.Jobs {
		if err := s.mayAsk(c, j.Ask.Nice); err != nil {
			return nil, err
		}
	}
	return s.backend.Jobs.SubmitJobs(c.ctx, c.who.name, b)
}

// mayAsk refuses a user a job that goes before others by his own word: as in Slurm, that is an operator's.
func (s *Server) mayAsk(c call, nice int) error {
	if nice >= 0 || c.who.role.Covers(authority.RoleOperator) {
		return nil
	}
	return Errorf(http.StatusForbidden, "nice %d of %s, who has the role %s: below 0 needs operator", nice, c.who.name, c.who.role).With("leave it out, or ask an operator")
}

// jobID is the job or array that the path names.
func (s *Server) jobID(c call) (int64, error) {
	text := c.r.PathValue("id")
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
		return id, nil
	}
	array, task, ok := strings.Cut(text, "_")
	_, err := strconv.ParseUint(array, 10, 63)
	if _, err2 := strconv.ParseUint(task, 10, 32); !ok || err != nil || err2 != nil {
		return 0, Errorf(http.StatusBadRequest, "%.40q is no job's id: they are numbers, and of a task of an array ARRAY_TASK", text)
	}
	return s.backend.Jobs.FindJob(c.ctx, text)
}

func (s *Server) oneJob(c call) (any, error) {
	id, err := s.jobID(c)
	if err != nil {
		return nil, err
	}
	return s.backend.Jobs.Job(c.ctx, id)
}

func (s *Server) jobLogs(c call) (any, error) {
	id, err := s.jobID(c)
	if err != nil {
		return nil, err
	}
	return s.backend.Jobs.JobLogs(c.ctx, id)
}

func (s *Server) orderJob(c call) (any, error) {
	id, err := s.jobID(c)
	if err != nil {
		return nil, err
	}
	verb := c.r.PathValue("verb")
	switch verb {
	case "cancel", "hold", "release", "requeue":
	default:
		return nil, Errorf(http.StatusNotFound, "%.40q is no order to a job: cancel, hold, release and requeue are", verb)
	}
	var v wire.JobVerb
	if err := decode(c, maxBody, true, &v); err != nil {
		return nil, err
	}
	if err := checkReason(v.Reason, false); err != nil {
		return nil, err
	}
	if !c.who.role.Covers(authority.RoleOperator) {
		j, err := s.backend.Jobs.Job(c.ctx, id)
		if err != nil {
			return nil, err
		}
		if j.User != c.who.name {
			return nil, s.refuseRole(c.r, c.who, authority.RoleOperator)
		}
	}
	return s.backend.Jobs.OrderJob(c.ctx, c.who.name, verb, id, v)
}
