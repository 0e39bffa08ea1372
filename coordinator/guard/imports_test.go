package guard

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestPure(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/coordinator/": "the state machine asks the guard, never the other way",
	})
}
