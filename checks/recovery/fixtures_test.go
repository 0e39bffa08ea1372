package recovery

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
)

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding { return []checks.Finding{Judge(checks.GPU{UUID: "GPU-1"}, r)} }
	checktest.Three(t, ID, judge(Reading{Have: checks.Read}), judge(Reading{Have: checks.Read, Action: 1}), judge(Reading{Err: "Unknown Error"}))
}
