package api

import (
	"context"
	"net/http"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Drills sends made-up faults through the whole chain.
type Drills interface {
	// Drill is the drill under way, or the last.
	Drill(ctx context.Context) (wire.Drill, error)
	// StartDrill begins one. It returns once that is durable; Drill says how it goes on.
	StartDrill(ctx context.Context, by string, ask wire.DrillAsk) (wire.Drill, error)
}

var drillRoutes = []route{
	{pattern: "GET " + wire.PathDrill, role: authority.RoleViewer, wait: readWait, do: func(s *Server, c call) (any, error) { return s.backend.Drills.Drill(c.ctx) }},
	{pattern: "POST " + wire.PathDrill, role: authority.RoleOperator, wait: readWait, do: (*Server).startDrill},
}

// How long a drill may be given.
const (
	drillLeast = 10 * time.Second
	drillMost  = 12 * time.Hour
)

func (s *Server) startDrill(c call) (any, error) {
	var ask wire.DrillAsk
	if err := decode(c, maxBody, true, &ask); err != nil {
		return nil, err
	}
	if ask.Node != "" && !authority.ValidName(ask.Node) {
		return nil, Errorf(http.StatusBadRequest, "%.80q is no node name", ask.Node)
	}
	if ask.GPU != nil && *ask.GPU < 0 {
		return nil, Errorf(http.StatusBadRequest, "gpu %d: want an index, from 0", *ask.GPU)
	}
	if ask.AcceptRisk != "" && ask.AcceptRisk != wire.RiskDrain {
		return nil, Errorf(http.StatusBadRequest, "risk %.40q is none that can be accepted here", ask.AcceptRisk).With("--accept-risk=" + wire.RiskDrain)
	}
	if d := ask.Within.D(); d != 0 && (d < drillLeast || d > drillMost) {
		return nil, Errorf(http.StatusBadRequest, "within %s: want %s to %s", d, drillLeast, drillMost)
	}
	if err := checkReason(ask.Reason, false); err != nil {
		return nil, err
	}
	return s.backend.Drills.StartDrill(c.ctx, c.who.name, ask)
}
