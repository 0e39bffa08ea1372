// Package policy holds the thresholds, modes, budgets and deadlines that a fleet owner sets. One policy is in force
// at a time; the control plane versions it and pushes it to the agents. The zero Policy is not valid: start from Default.
package policy

import "time"

// A Mode says how far a check's findings may go.
type Mode string

const (
	Off     Mode = "off"     // the check does not run
	Observe Mode = "observe" // it runs and says what would have been done; nothing acts on it
	Act     Mode = "act"
)

// A Policy is everything a fleet owner may set. The yaml names are the file's; the json names are the wire's.
type Policy struct {
	Version int              `json:"version" yaml:"-"`     // given by the control plane, only rises; 0 is the built-in default
	Mode    Mode             `json:"mode" yaml:"mode"`     // the whole fleet's; observe after a fresh install
	Checks  map[string]Check `json:"checks" yaml:"checks"` // by catalog id; a check not named acts with its defaults

	Inventory Inventory `json:"inventory" yaml:"inventory"`
	ECC       ECC       `json:"ecc" yaml:"ecc"`
	RowRemap  RowRemap  `json:"row_remap" yaml:"row_remap"`

	Retired RetiredPages `json:"retired_pages" yaml:"retired_pages"`
	NVLink  NVLink       `json:"nvlink" yaml:"nvlink"`
	Fabric  Fabric       `json:"fabric" yaml:"fabric"`
	PCIe    PCIe         `json:"pcie" yaml:"pcie"`
	Clocks  Clocks       `json:"clocks" yaml:"clocks"`
	Thermal Thermal      `json:"thermal" yaml:"thermal"`
	Modes   Modes        `json:"gpu_modes" yaml:"gpu_modes"`

	XID     XID     `json:"xid" yaml:"xid"`
	AER     AER     `json:"aer" yaml:"aer"`
	HostLog HostLog `json:"host_log" yaml:"host_log"`
	DCGM    DCGM    `json:"dcgm" yaml:"dcgm"`
	Golden  Golden  `json:"golden" yaml:"golden"`

	Bandwidth Bandwidth `json:"bandwidth" yaml:"bandwidth"`

	Baseline   Baseline             `json:"baseline" yaml:"baseline"`
	UserChecks map[string]UserCheck `json:"user_checks,omitempty" yaml:"user_checks"` // by name; their check ids are user/NAME

	Infiniband Ports     `json:"infiniband" yaml:"infiniband"`
	Ethernet   Ports     `json:"ethernet" yaml:"ethernet"`
	Mounts     Mounts    `json:"mounts" yaml:"mounts"`
	Memory     Memory    `json:"memory" yaml:"memory"`
	CPU        CPU       `json:"cpu" yaml:"cpu"`
	Processes  Processes `json:"processes" yaml:"processes"`
	Kernel     Kernel    `json:"kernel" yaml:"kernel"`
	NVMe       NVMe      `json:"nvme" yaml:"nvme"`
	TimeSync   TimeSync  `json:"timesync" yaml:"timesync"`

	Agent       Agent       `json:"agent" yaml:"agent"`
	Hooks       Hooks       `json:"hooks" yaml:"hooks"`
	Certificate Certificate `json:"certificate" yaml:"certificate"`
	Guard       Guard       `json:"guard" yaml:"guard"`
	Lifecycle   Lifecycle   `json:"lifecycle" yaml:"lifecycle"`
	Drill       Drill       `json:"drill" yaml:"drill"`
	Lemons      Lemons      `json:"lemons" yaml:"lemons"`

	Overrides []Override `json:"overrides,omitempty" yaml:"overrides"` // for some products or nodes; For applies them
}

// A Duration is a time.Duration that reads and writes as "30s" or "12h". Days may be written as "7d".
type Duration time.Duration

// D is the duration as the time package knows it.
func (d Duration) D() time.Duration { return time.Duration(d) }
