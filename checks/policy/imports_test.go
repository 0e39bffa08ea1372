package policy

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/checks/":         "a policy is what checks are judged by; it knows their words, not them",
		"github.com/assay-gpu/assay/checks/hostlist": "", // a policy names nodes as Slurm does
	})
}
