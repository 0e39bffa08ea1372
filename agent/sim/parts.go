package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parts are what a GPU shows of its links, clocks, temperatures and settings. A counter with a rate rises by itself.
type Parts struct {
	Links []Link `json:"links,omitempty"` // NVLinks, as many as the model has

	PCIeWidth            int    `json:"pcie_width"` // lanes
	PCIeGen              int    `json:"pcie_gen"`
	PCIeReplays          uint64 `json:"pcie_replays"`
	PCIeReplaysPerMinute uint64 `json:"pcie_replays_per_minute,omitempty"`
	AERCorrectable       uint64 `json:"aer_correctable"`
	AERNonFatal          uint64 `json:"aer_nonfatal"`
	AERFatal             uint64 `json:"aer_fatal"`
	ACS                  bool   `json:"acs"`                    // the port above redirects peer-to-peer traffic
	CopyPercent          int    `json:"copy_percent,omitempty"` // of what the link gives that copies reach; 0: all of it

	Utilization       uint32            `json:"utilization"`        // percent
	Temperature       int               `json:"temperature"`        // of the core, °C
	MemoryTemperature int               `json:"memory_temperature"` // °C; 0: not told
	Throttle          []string          `json:"throttle,omitempty"` // clock event reasons: see Throttles
	Held              map[string]uint64 `json:"held_ns,omitempty"`  // how long each reason has held since the driver was loaded, up to RatesSince

	Processes []string `json:"processes,omitempty"` // ids of what computes on it

	Persistence bool   `json:"persistence"`
	ComputeMode string `json:"compute_mode"` // see ComputeModes
	MIG         bool   `json:"mig"`
	MIGPending  bool   `json:"mig_pending"`

	Fabric       string `json:"fabric"` // see Fabrics
	FabricStatus uint32 `json:"fabric_status"`
	FabricHealth uint32 `json:"fabric_health"` // NVML_GPU_FABRIC_HEALTH_MASK_*

	RetiredSingle  uint32 `json:"retired_single"` // pages, on boards without a row remapper
	RetiredDouble  uint32 `json:"retired_double"`
	RetiredPending bool   `json:"retired_pending"`
	BanksNone      uint32 `json:"banks_none"` // memory banks without a spare row

	VolatileCorrectedPerMinute uint64    `json:"volatile_corrected_per_minute,omitempty"`
	RatesSince                 time.Time `json:"rates_since"` // what the counters above stand at is as of this time
}

// A Link is one NVLink.
type Link struct {
	State             string `json:"state"` // see LinkStates
	Replay            uint64 `json:"replay"`
	Recovery          uint64 `json:"recovery"`
	CRC               uint64 `json:"crc"`
	ReplayPerMinute   uint64 `json:"replay_per_minute,omitempty"`
	RecoveryPerMinute uint64 `json:"recovery_per_minute,omitempty"`
	CRCPerMinute      uint64 `json:"crc_per_minute,omitempty"`
	SpeedMBps         uint32 `json:"speed_mbps"`
	EffectiveBER      string `json:"effective_ber,omitempty"` // as 1e-5; NVLink 5 only
}

// The words of a scenario, each at the place of its number in NVML; empty places have no word.
var (
	LinkStates   = []string{"down", "up", "sleep", "no_traffic"}
	ComputeModes = []string{"default", "", "prohibited", "exclusive_process"}
	Fabrics      = []string{"none", "not_started", "in_progress", "completed"}
	Throttles    = []string{"idle", "", "sw_power_cap", "hw_slowdown", "", "sw_thermal", "hw_thermal", "power_brake"}
)

// PartsChange is what to change of Parts.
type PartsChange struct {
	NVLink map[int]LinkChange `yaml:"nvlink" json:"nvlink,omitempty"` // by number; sim set writes nvlink.3.state=down

	PCIeWidth                  *int     `yaml:"pcie_width" json:"pcie_width,omitempty"`
	PCIeGen                    *int     `yaml:"pcie_gen" json:"pcie_gen,omitempty"`
	PCIeReplays                *uint64  `yaml:"pcie_replays" json:"pcie_replays,omitempty"`
	PCIeReplaysPerMinute       *uint64  `yaml:"pcie_replays_per_minute" json:"pcie_replays_per_minute,omitempty"`
	AERCorrectable             *uint64  `yaml:"aer_correctable" json:"aer_correctable,omitempty"`
	AERNonFatal                *uint64  `yaml:"aer_nonfatal" json:"aer_nonfatal,omitempty"`
	AERFatal                   *uint64  `yaml:"aer_fatal" json:"aer_fatal,omitempty"`
	ACS                        *bool    `yaml:"acs" json:"acs,omitempty"`
	CopyPercent                *int     `yaml:"copy_percent" json:"copy_percent,omitempty"`
	Utilization                *uint32  `yaml:"utilization" json:"utilization,omitempty"`
	Temperature                *int     `yaml:"temperature" json:"temperature,omitempty"`
	MemoryTemperature          *int     `yaml:"memory_temperature" json:"memory_temperature,omitempty"`
	Throttle                   []string `yaml:"throttle" json:"throttle,omitempty"`
	Processes                  []string `yaml:"processes" json:"processes,omitempty"`
	Persistence                *bool    `yaml:"persistence" json:"persistence,omitempty"`
	ComputeMode                *string  `yaml:"compute_mode" json:"compute_mode,omitempty"`
	MIG                        *bool    `yaml:"mig" json:"mig,omitempty"`
	MIGPending                 *bool    `yaml:"mig_pending" json:"mig_pending,omitempty"`
	Fabric                     *string  `yaml:"fabric" json:"fabric,omitempty"`
	FabricStatus               *uint32  `yaml:"fabric_status" json:"fabric_status,omitempty"`
	FabricHealth               *uint32  `yaml:"fabric_health" json:"fabric_health,omitempty"`
	RetiredSingle              *uint32  `yaml:"retired_single" json:"retired_single,omitempty"`
	RetiredDouble              *uint32  `yaml:"retired_double" json:"retired_double,omitempty"`
	RetiredPending             *bool    `yaml:"retired_pending" json:"retired_pending,omitempty"`
	BanksNone                  *uint32  `yaml:"banks_none" json:"banks_none,omitempty"`
	VolatileCorrectedPerMinute *uint64  `yaml:"volatile_corrected_per_minute" json:"volatile_corrected_per_minute,omitempty"`
}

// LinkChange is what to change of a Link.
type LinkChange struct {
	State             *string `yaml:"state" json:"state,omitempty"`
	Replay            *uint64 `yaml:"replay" json:"replay,omitempty"`
	Recovery          *uint64 `yaml:"recovery" json:"recovery,omitempty"`
	CRC               *uint64 `yaml:"crc" json:"crc,omitempty"`
	ReplayPerMinute   *uint64 `yaml:"replay_per_minute" json:"replay_per_minute,omitempty"`
	RecoveryPerMinute *uint64 `yaml:"recovery_per_minute" json:"recovery_per_minute,omitempty"`
	CRCPerMinute      *uint64 `yaml:"crc_per_minute" json:"crc_per_minute,omitempty"`
	SpeedMBps         *uint32 `yaml:"speed_mbps" json:"speed_mbps,omitempty"`
	EffectiveBER      *string `yaml:"effective_ber" json:"effective_ber,omitempty"`
}

func (c PartsChange) faults() (fs []fault) {
	word := func(key string, got *string, words []string) {
		if got != nil && (*got == "" || !slices.Contains(words, *got)) {
			fs = append(fs, fault{key, fmt.Sprintf("%q: want one of %s", *got, listWords(words))})
		}
	}
	word("compute_mode", c.ComputeMode, ComputeModes)
	word("fabric", c.Fabric, Fabrics)
	for i, name := range c.Throttle {
		word(fmt.Sprintf("throttle[%d]", i), &name, Throttles)
	}
	if len(c.Processes) > maxProcesses {
		fs = append(fs, fault{"processes", fmt.Sprintf("%d of them: want %d at most", len(c.Processes), maxProcesses)})
	}
	for i, pid := range c.Processes {
		if processID(pid) == 0 {
			fs = append(fs, fault{fmt.Sprintf("processes[%d]", i), fmt.Sprintf("%q: want a process id", pid)})
		}
	}
	if w := c.PCIeWidth; w != nil && !slices.Contains([]int{0, 1, 2, 4, 8, 16}, *w) {
		fs = append(fs, fault{"pcie_width", fmt.Sprintf("%d: want 0, 1, 2, 4, 8 or 16 lanes", *w)})
	}
	if g := c.PCIeGen; g != nil && (*g < 1 || *g > len(pcieSpeeds)) {
		fs = append(fs, fault{"pcie_gen", fmt.Sprintf("%d: want 1 to %d", *g, len(pcieSpeeds))})
	}
	if p := c.CopyPercent; p != nil && (*p < 0 || *p > 100) {
		fs = append(fs, fault{"copy_percent", fmt.Sprintf("%d: want 1 to 100 percent, or 0 for all that the link gives", *p)})
	}
	if u := c.Utilization; u != nil && *u > 100 {
		fs = append(fs, fault{"utilization", fmt.Sprintf("%d: want 0 to 100 percent", *u)})
	}
	for _, i := range slices.Sorted(maps.Keys(c.NVLink)) {
		l, at := c.NVLink[i], fmt.Sprintf("nvlink.%d", i)
		if i < 0 || i >= maxLinks {
			fs = append(fs, fault{at, fmt.Sprintf("want a link, 0 to %d", maxLinks-1)})
		}
		word(at+".state", l.State, LinkStates)
		if l.EffectiveBER != nil && *l.EffectiveBER != "" {
			if _, err := packBER(*l.EffectiveBER); err != nil {
				fs = append(fs, fault{at + ".effective_ber", err.Error()})
			}
		}
	}
	return fs
}

// processID is a process id from text; 0 when it is none.
func processID(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return uint32(n)
}

func listWords(words []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(words), func(s string) bool { return s == "" }), ", ")
}

// packBER packs a bit error rate as NVML does: the exponent in bits 0 to 7, the mantissa, 1 to 15, in bits 8 to 11.
func packBER(text string) (uint64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q: want a bit error rate above 0 and below 1, as 1e-5", text)
	}
	exp := -math.Floor(math.Log10(v) + 1e-9)
	return uint64(exp)&0xff | uint64(math.Round(v*math.Pow10(int(exp))))<<8, nil
}

// apply changes the GPU. What its counters have risen to by themselves is written down before.
func (g *GPU) apply(c GPUChange, now time.Time) error {
	for i := range c.NVLink {
		if i >= len(g.Links) {
			return fmt.Errorf("nvlink.%d: GPU %d, %s, has %d links", i, g.Index, g.Name, len(g.Links))
		}
	}
	g.settle(now)
	merge(g, c)
	for i, l := range c.NVLink {
		merge(&g.Links[i], l)
	}
	return nil
}

// settle brings every counter up to now.
func (g *GPU) settle(now time.Time) {
	minutes := max(0, now.Sub(g.RatesSince).Minutes())
	if g.RatesSince.IsZero() {
		minutes = 0
	}
	rise := func(c *uint64, perMinute uint64) { *c += uint64(minutes * float64(perMinute)) }
	for i := range g.Links {
		l := &g.Links[i]
		rise(&l.Replay, l.ReplayPerMinute)
		rise(&l.Recovery, l.RecoveryPerMinute)
		rise(&l.CRC, l.CRCPerMinute)
	}
	rise(&g.PCIeReplays, g.PCIeReplaysPerMinute)
	rise(&g.VolatileCorrected, g.VolatileCorrectedPerMinute)
	rise(&g.AggregateCorrected, g.VolatileCorrectedPerMinute)
	for _, name := range g.Throttle {
		if g.Held == nil {
			g.Held = map[string]uint64{}
		}
		g.Held[name] += uint64(minutes * float64(time.Minute))
	}
	g.RatesSince = now
}

// healthy is what a model shows at rest. Its far ends are the switches of the board, or nobody where it has none.
func (m model) healthy() Parts {
	p := Parts{
		PCIeWidth: 16, PCIeGen: m.pcieGen, Temperature: 34, Persistence: true, ComputeMode: "default", Fabric: "none", Throttle: []string{"idle"},
	}
	if m.memoryMax > 0 {
		p.MemoryTemperature = 42
	}
	if m.fabric {
		p.Fabric = "completed"
	}
	for range m.links {
		p.Links = append(p.Links, Link{State: "up", SpeedMBps: m.linkSpeed})
	}
	return p
}
