package bandwidth

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/golden")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/checks/catalog":    "the catalog knows the checks, not the other way round",
		"github.com/assay-gpu/assay/checks/strictyaml": "a check reads no file; its limits come to it as values",
		"github.com/assay-gpu/assay/checks/policy/":    "a check reads no file; its limits come to it as values",
		"github.com/assay-gpu/assay/golden/":           "a check judges what a run has shown; it runs none",
	})
}
