package aer

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	judge := func(line string) []checks.Finding {
		e, ok := Parse(line)
		if !ok {
			t.Fatalf("not read: %s", line)
		}
		return []checks.Finding{Judge(e, "", 1, policy.Default().AER)}
	}
	checktest.Events(t, ID, judge("pcieport 0000:00:01.0: AER: Corrected error message received from 0000:01:00.0"),
		judge("pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, id=0010(Receiver ID)"),
		judge("nvidia 0000:3b:00.0: AER: aer_status: 0x00000040, aer_mask: 0x00000000"))
}
