package inventory

import (
	"testing"

	"github.com/assay-gpu/assay/checks/checktest"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestFixtures(t *testing.T) {
	checktest.Three(t, ID,
		Judge("n", Reading{Count: 2, GPUs: gpus("12")}, accepted("12"), policy.Inventory{}),
		Judge("n", Reading{Count: 1, GPUs: gpus("1")}, accepted("12"), policy.Inventory{}),
		Judge("n", Reading{Count: -1}, accepted("12"), policy.Inventory{}))
}
