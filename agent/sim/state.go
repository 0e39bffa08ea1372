package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A State is all that is simulated of one node.
type State struct {
	Node       string    `json:"node"`
	Model      string    `json:"model"`
	NodeSerial string    `json:"node_serial"`
	Driver     string    `json:"driver"`
	BootID     string    `json:"boot_id"`
	BootedAt   time.Time `json:"booted_at"`
	Boots      int       `json:"boots"`   // reboots since Init
	Library    string    `json:"library"` // the library that DIR/libnvidia-ml.so.1 stands for
	NodeFaults
	GPUs   []GPU   `json:"gpus"`
	Host   Host    `json:"host"`
	Events []Event `json:"events,omitempty"` // for Run
}

// NodeFaults are the faults of the driver as a whole.
type NodeFaults struct {
	Init              string   `json:"init,omitempty"`            // what loading and nvmlInit do: see Inits
	SymbolsMissing    []string `json:"symbols_missing,omitempty"` // as in the library of an older driver
	NewestField       int      `json:"newest_field,omitempty"`    // of nvmlDeviceGetFieldValues, the highest that the driver knows; 0: all
	DCGM              string   `json:"dcgm,omitempty"`            // whether there is DCGM, and how it does: see DCGMs
	Diag              string   `json:"dcgm_diag,omitempty"`       // what dcgmi diag does: see Diags
	Persists          bool     `json:"persists,omitempty"`        // Init stays through reboots
	HealsAfterReboots int      `json:"heals_after_reboots,omitempty"`
}

// Inits are the values of NodeFaults.Init: empty for a driver that starts, or how it does not.
var Inits = []string{"", "hang", "library_not_found", "error", "version_mismatch"}

// A GPU is one simulated device. Life counters and a failed remap stay through resets and reboots, as they do on the real
// device; all other faults clear at a reboot unless Persists.
type GPU struct {
	Index  int    `json:"index"` // its slot; the driver counts anew when GPUs before it are missing
	UUID   string `json:"uuid"`
	PCI    string `json:"pci"`
	Name   string `json:"name"`
	Serial string `json:"serial"`

	ECCEnabled           bool     `json:"ecc_enabled"`
	ECCPending           bool     `json:"ecc_pending"` // the mode after the next reset
	VolatileCorrected    uint64   `json:"volatile_corrected"`
	VolatileUncorrected  uint64   `json:"volatile_uncorrected"`
	AggregateCorrected   uint64   `json:"aggregate_corrected"`
	AggregateUncorrected uint64   `json:"aggregate_uncorrected"`
	SRAMThreshold        bool     `json:"sram_threshold"` // the driver's RMA threshold for SRAM errors is exceeded
	RemapCorrectable     uint32   `json:"remap_correctable"`
	RemapUncorrectable   uint32   `json:"remap_uncorrectable"`
	RemapPending         bool     `json:"remap_pending"`
	RemapFailed          bool     `json:"remap_failed"`
	RecoveryAction       uint32   `json:"recovery_action"`               // NVML field 230
	Lost                 bool     `json:"lost"`                          // every call: GPU is lost
	Missing              bool     `json:"missing"`                       // gone from the bus: neither counted nor in sysfs
	Hang                 string   `json:"hang,omitempty"`                // an NVML function that never returns for this GPU, or "all"
	NotSupported         []string `json:"not_supported,omitempty"`       // what the GPU does not have: functions, and fields of nvmlDeviceGetFieldValues as field_82
	Unreadable           []string `json:"unreadable,omitempty"`          // what fails with an unknown error, named likewise
	ComputeFaults        string   `json:"compute_faults,omitempty"`      // what computes wrong, as lines of golden/fakecuda's fault file: for life
	CUDAHang             bool     `json:"cuda_hang,omitempty"`           // a kernel, once launched, never ends
	CUDAError            int      `json:"cuda_error,omitempty"`          // the CUresult of every launch
	DCGMError            int      `json:"dcgm_error,omitempty"`          // the error code that DCGM sees on it
	Persists             bool     `json:"persists,omitempty"`            // faults stay through resets and reboots
	HealsAfterReboots    int      `json:"heals_after_reboots,omitempty"` // faults stay through this many reboots, less one
	Parts
}

// Read gives the state of the node in dir.
func Read(dir string) (State, error) {
	var s State
	b, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return s, fmt.Errorf("simulated node: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("simulated node %s: state.json: %w", dir, err)
	}
	return s, nil
}

// save writes the state, what the library reads of it, the library itself and sysfs. With the lock held.
func (s State) save(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := s.placeLibrary(dir); err != nil {
		return fmt.Errorf("simulated node %s: library: %w", dir, err)
	}
	if err := s.placeDCGM(dir); err != nil {
		return fmt.Errorf("simulated node %s: DCGM: %w", dir, err)
	}
	if err := s.writeSysfs(In(dir).Sysfs); err != nil {
		return fmt.Errorf("simulated node %s: sysfs: %w", dir, err)
	}
	if err := s.writeHost(dir); err != nil {
		return fmt.Errorf("simulated node %s: host: %w", dir, err)
	}
	if err := replace(filepath.Join(dir, "state.json"), append(b, '\n')); err != nil {
		return fmt.Errorf("simulated node %s: %w", dir, err)
	}
	if err := replace(filepath.Join(dir, "nvml.state"), s.encode()); err != nil {
		return fmt.Errorf("simulated node %s: %w", dir, err)
	}
	return nil
}

// change reads the state, lets f change it and writes it back, while nobody else does.
func change(dir string, f func(*State) error) error {
	if _, err := os.Stat(filepath.Join(dir, "state.json")); err != nil {
		return fmt.Errorf("simulated node: %w", err)
	}
	return locked(dir, func() error {
		s, err := Read(dir)
		if err != nil {
			return err
		}
		if err := f(&s); err != nil {
			return err
		}
		return s.save(dir)
	})
}

// gpu is GPU i.
func (s *State) gpu(i int) (*GPU, error) {
	if i < 0 || i >= len(s.GPUs) {
		return nil, fmt.Errorf("node %s has no GPU %d: it has %d", s.Node, i, len(s.GPUs))
	}
	return &s.GPUs[i], nil
}
