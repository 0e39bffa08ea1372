package lifecycle

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestPure(t *testing.T) {
	importrules.Pure(t, "github.com/assay-gpu/assay/checks", "github.com/assay-gpu/assay/coordinator/certificate",
		"github.com/assay-gpu/assay/coordinator/guard")
	importrules.Check(t, map[string]string{
		"github.com/assay-gpu/assay/coordinator/wire":  "messages are made from nodes, not nodes from messages",
		"github.com/assay-gpu/assay/coordinator/store": "writes are values; the coordinator carries them out",
		"log/slog": "a decision is logged where it is carried out",
	})
}
