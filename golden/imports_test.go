package golden

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/golden/cubin", "github.com/assay-gpu/assay/golden/kernels", "github.com/assay-gpu/assay/golden/ref")
}
