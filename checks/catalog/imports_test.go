package catalog

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/checks/strictyaml": "the catalog judges values; package policyfile reads files",
		"github.com/assay-gpu/assay/checks/policy/":    "the catalog judges values; package policyfile reads files",
	})
}
