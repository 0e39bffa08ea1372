package api

import (
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
)

// A Route is whom an endpoint is for.
type Route struct {
	Pattern string
	Caller  authority.Kind
	Role    authority.Role
	Admins  []string
}

// Routes are all endpoints there are.
func Routes() (all []Route) {
	for _, rt := range allRoutes() {
		all = append(all, Route{rt.pattern, rt.caller(), rt.role, rt.admins})
	}
	return all
}

// SetKeepalive shortens the keepalive of streams opened from now on.
func (s *Server) SetKeepalive(d time.Duration) { s.keepalive = d }

// Unlimited lifts the bounds on rates, so that a fuzz target reaches the decoders.
func (s *Server) Unlimited() { s.limits, s.enrolling = newLimiter(1e9, 1e9), newBucket(1e9, 1e9) }

// Shaped reports whether the schema says what an endpoint does, and Shapes how many it speaks of.
func Shaped(pattern string) bool { return shapes[pattern].does != "" }

func Shapes() int { return len(shapes) }
