package policy

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/coordinator/hostlist")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/checks/": "a policy is what checks are judged by; it knows their words, not them",
	})
}
