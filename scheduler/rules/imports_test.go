package rules

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

// What a site says is data, and its words are those of queue, quota, backfill and sbatch.
func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks/hostlist", "github.com/assay-gpu/assay/scheduler/backfill",
		"github.com/assay-gpu/assay/scheduler/queue",
		"github.com/assay-gpu/assay/scheduler/quota", "github.com/assay-gpu/assay/scheduler/sbatch")
}
