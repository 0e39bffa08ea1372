package checks_test

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

// The shared words know nothing but the standard library.
func TestImports(t *testing.T) { importrules.Pure(t) }
