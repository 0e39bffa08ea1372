package certificate

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestPure(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/coordinator/": "agents verify certificates too, and know no coordinator",
		"crypto/rand": "keys are made by the authority; the same input must give the same output here",
	})
}
