package cubin

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/golden/kernels")
}
