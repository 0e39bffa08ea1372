package scheduler

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/scheduler/topo")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/checks/policy/":  "a gang says what certificate it needs; the policy does not",
		"github.com/assay-gpu/assay/checks/catalog/": "placement knows levels, not checks",
	})
}
