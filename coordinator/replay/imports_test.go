package replay

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/coordinator/lifecycle", "github.com/assay-gpu/assay/coordinator/wire")
}
