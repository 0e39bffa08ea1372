package nvml

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/checks"
)

// A Block says why a GPU, or NVML as a whole, is not asked any more until the next boot.
type Block struct {
	Call   string     `json:"call"` // the driver call that hung
	Since  time.Time  `json:"since"`
	Reason string     `json:"reason"`
	Count  int        `json:"count,omitempty"` // fresh children, in a row, in which it hung
	GPU    checks.GPU `json:"gpu,omitzero"`    // who it is, as last known
}

// blockedFile is RUN_DIR/blocked.
type blockedFile struct {
	BootID string           `json:"boot_id"`
	GPUs   map[string]Block `json:"gpus"`           // by UUID; by PCI address where none is known
	Init   *Block           `json:"init,omitempty"` // nvmlInit itself
}

// loadBlocked reads what an earlier agent of the same boot blocked. A file of another boot, or one that cannot be read, is
// as none.
func loadBlocked(runDir, bootID string, log *slog.Logger) blockedFile {
	var f blockedFile
	if runDir != "" {
		if _, err := atomicfile.ReadJSON(filepath.Join(runDir, "blocked"), &f); err != nil {
			log.Error("blocked file not read", "err", err)
			f = blockedFile{}
		}
	}
	if f.BootID != bootID {
		f = blockedFile{BootID: bootID}
	}
	if f.GPUs == nil {
		f.GPUs = map[string]Block{}
	}
	return f
}

func (f blockedFile) save(runDir string) error {
	if runDir == "" {
		return nil
	}
	return atomicfile.WriteJSON(filepath.Join(runDir, "blocked"), f)
}
