package driver

import (
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/checktest"
)

func TestFixtures(t *testing.T) {
	gpu := checks.GPU{UUID: "GPU-1"}
	checktest.Three(t, ID,
		[]checks.Finding{JudgeInit("n", Init{OK: true}, hungChildren), JudgeCall(gpu, Call{}, hungChildren)},
		[]checks.Finding{JudgeInit("n", Init{OK: true}, hungChildren), JudgeCall(gpu, Call{Lost: true}, hungChildren)},
		[]checks.Finding{JudgeInit("n", Init{Err: "libnvidia-ml.so.1: not found"}, hungChildren)})
}
