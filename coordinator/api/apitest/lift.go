package apitest

import (
	"context"
	"net/http"

	"github.com/assay-gpu/assay/coordinator/api"
)

// Lift implements api.Guarder: the plane was never restored.
func (guarder) Lift(context.Context, string, string, bool) error {
	return api.Errorf(http.StatusConflict, "nothing to lift: no restore holds the policy at observe")
}
