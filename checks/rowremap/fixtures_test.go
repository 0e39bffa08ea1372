package rowremap

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding {
		return []checks.Finding{Judge(checks.GPU{UUID: "GPU-1"}, r, policy.Default().RowRemap)}
	}
	checktest.Three(t, ID, judge(Reading{Have: checks.Read}), judge(Reading{Have: checks.Read, Failed: true}), judge(Reading{Err: "Unknown Error"}))
}
