package quota

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

// The account tree is arithmetic: who asks, and for which job, is not its business.
func TestImports(t *testing.T) { importrules.Pure(t) }
