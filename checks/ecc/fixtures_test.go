package ecc

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	judge := func(r Reading) []checks.Finding {
		return []checks.Finding{Judge(checks.GPU{UUID: "GPU-1"}, r, policy.Default().ECC)}
	}
	checktest.Three(t, ID, judge(Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}), judge(Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read, VolatileUncorrected: 1}), judge(Reading{Err: "Unknown Error"}))
}
