package catalog

import (
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/thermal"
)

// gpuState are the checks of a GPU's links, clocks, temperatures and settings.
func gpuState() []Check {
	return []Check{
		{
			ID: retired.ID, Title: "the table of retired pages has room", Unit: "pages",
			Doc: `Reads how many pages of memory a board without a row remapper has taken out of use, after single-bit and after
double-bit errors. Pages that wait for a reset are safe to compute on: it passes and asks for a reset when the node is
idle. A table that is full, or that a waiting page does not fit into, is grounds for RMA.`,
			Source:  `nvmlDeviceGetFieldValues, NVML_FI_DEV_RETIRED_SBE, _DBE and _PENDING; NVIDIA, "Dynamic Page Retirement"; DCGM health for both limits; Azure azurehpc-health-checks for the pending one`,
			Applies: "boards before A100; others say not supported",
			Action:  "rma when the table is full; reset_gpu when idle for pending pages; watch",
			Cost:    "none of its own; part of one call a GPU",
			Thresholds: []Threshold{
				{"retired_pages.full", func(p policy.Policy) any { return p.Retired.Full }},
				{"retired_pages.watch", func(p policy.Policy) any { return p.Retired.Watch }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "Azure: 62 with one pending replaces; gcm: more than 10, or pending", Gpud: "none", NVSentinel: "pending: none (#1826)", DCGM: "63 fails; 15 warns, with more than one double-bit page in a week"},
		},
		{
			ID: nvlink.ID, Title: "the NVLinks are up, and clean", Unit: "links; errors a second or minute; bit error rate",
			Doc: `Reads the state of each NVLink, and by how much its counters rose in the last minute or more. An inactive link is
broken when it was active earlier in this boot, when most peers of the same product on this node have it, or when policy
names more links than are active. A link that is inactive on all peers alike is so by design, and a board without a bridge
has none. All links of all GPUs of a baseboard inactive at once is the fabric manager's doing, or the driver's: look
there first. A counter that stands at the end of its range is said to be saturated, and has no rate. One that could not be read leaves the
verdict open.`,
			Source:  "nvmlDeviceGetFieldValues, NVML_FI_DEV_NVLINK_* by link, or what drivers before R520 have: nvmlDeviceGetNvLinkState, a field for each link, nvmlDeviceGetNvLinkErrorCounter; nvmlDeviceGetNvLinkRemotePciInfo; DCGM health (CRC), Azure cyclecloud-healthagent (bit error rate)",
			Applies: "GPUs with NVLink; others say not supported. Bit error rates: NVLink 5",
			Action:  "reset_gpu for a link lost in this boot; reboot for one that never came up; drain for one with errors; fix_config for the fabric; watch",
			Cost:    "1 call a GPU; 6 more in each of the first cycles, for the far ends; before R520 1 more a link",
			Thresholds: []Threshold{
				{"nvlink.links", func(p policy.Policy) any { return p.NVLink.Links }},
				{"nvlink.max_crc_per_second", func(p policy.Policy) any { return p.NVLink.MaxCRCPerSecond }},
				{"nvlink.max_retries_per_minute", func(p policy.Policy) any { return p.NVLink.MaxRetriesPerMinute }},
				{"nvlink.max_effective_ber", func(p policy.Policy) any { return p.NVLink.MaxEffectiveBER }},
			},
			Suites: everySuite, Revision: 2,
			Neighbours: Neighbours{NHC: "Azure: every link of the profile; gcm: no error allowed", Gpud: "no link active on several GPUs; counters shown, never judged", NVSentinel: "down: restart the machine; not where a GPU has none", DCGM: "down fails; an error warns; 100 CRC errors a second; bit error rates by the minute"},
		},
		{
			ID: fabric.ID, Title: "the GPU has joined the NVLink fabric", Unit: "registration state, health bits",
			Doc: `Reads how far a GPU has come in joining the fabric that the fabric manager sets up, and what that says of its health.
One that has not joined leaves the verdict open, since this takes a while after boot, and is a fault when it still has not
a minute later. Degraded bandwidth, an unhealthy route or a wrong configuration are faults; a recovery in progress is
watched. On a node with NVSwitches of its own the fabric manager must run: as a process, or behind its port 6666.`,
			Source:  "nvmlDeviceGetGpuFabricInfoV; nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*; procfs: driver/nvidia-nvswitch, processes, net/tcp",
			Applies: "H100 and later on NVSwitch, others say not supported; the fabric manager: A100, H100 and H200 with NVSwitches",
			Action:  "fix_config; drain; watch",
			Cost:    "1 call a GPU, and 1 small file in procfs",
			Thresholds: []Threshold{
				{"fabric.require_manager", func(p policy.Policy) any { return p.Fabric.RequireManager }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "none", Gpud: "fabric state, and whether port 6666 listens", NVSentinel: "none", DCGM: "fabric manager status"},
		},
		{
			ID: pcie.ID, Title: "the PCIe link is wide, fast and clean", Unit: "lanes, generation, errors a minute",
			Doc: `Compares the link's width with what GPU and port can both do, always; and its speed, only while the GPU is busy at two
readings, since it is lowered at rest. Replays and corrected errors are judged by their rate, against the bit error rate
that PCIe allows; any fatal error after the first reading is a fault. A bridge that redirects peer-to-peer traffic (ACS) on bare metal costs
bandwidth between GPUs and is watched, or a fault where policy says so. A counter, or the load, that could not be read leaves the
verdict open; a counter at the end of its range is said to be saturated.`,
			Source:  "sysfs bus/pci/devices: link width and speed, aer_dev_*, config (ACS); NVML_FI_DEV_PCIE_REPLAY_COUNTER, nvmlDeviceGetUtilizationRates; DCGM health for the rates",
			Applies: "every GPU that sysfs shows; errors where the kernel reports them; ACS outside virtual machines, for root",
			Action:  "drain; fix_config for ACS; watch",
			Cost:    "1 call a GPU, and 10 small files in sysfs",
			Thresholds: []Threshold{
				{"pcie.width", func(p policy.Policy) any { return p.PCIe.Width }},
				{"pcie.busy_percent", func(p policy.Policy) any { return p.PCIe.BusyPercent }},
				{"pcie.repeats_per_minute_and_lane.gen1", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen1 }},
				{"pcie.repeats_per_minute_and_lane.gen2", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen2 }},
				{"pcie.repeats_per_minute_and_lane.gen3", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen3 }},
				{"pcie.repeats_per_minute_and_lane.gen4", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen4 }},
				{"pcie.repeats_per_minute_and_lane.gen5", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen5 }},
				{"pcie.repeats_per_minute_and_lane.gen6", func(p policy.Policy) any { return p.PCIe.RepeatsPerMinuteAndLane.Gen6 }},
				{"pcie.require_acs_off", func(p policy.Policy) any { return p.PCIe.RequireACSOff }},
			},
			Suites: everySuite, Revision: 2,
			Neighbours: Neighbours{NHC: "gcm: speed and width by a manifest", Gpud: "width and speed: none; ACS on bare metal: an event", NVSentinel: "width and speed by the diagnostic only: contact support; replay rate by DCGM", DCGM: "replays a minute by generation and lane; width and speed in the diagnostic only"},
		},
		{
			ID: clocks.ID, Title: "nothing slows the GPU down but its own limits", Unit: "share of time",
			Doc: `Reads why the GPU runs below its highest clocks, and for how long each reason held in the last minute or more. Heat and
power brakes count; idling, power caps and clocks set on purpose do not. A slowdown by hardware for more than a tenth of
the time, or by software for heat for most of it, is a fault; where the driver does not count the time, it must be there
at two readings. A hardware thermal slowdown is a fault at once.`,
			Source:  "nvmlDeviceGetCurrentClocksEventReasons; NVML_FI_DEV_CLOCKS_EVENT_REASON_*; leptonai/gpud for the share",
			Applies: "every NVIDIA GPU; the time held: drivers since R570, software thermal before that too",
			Action:  "drain; watch",
			Cost:    "1 call a GPU",
			Thresholds: []Threshold{
				{"clocks.max_hw_share", func(p policy.Policy) any { return p.Clocks.MaxHWShare }},
				{"clocks.max_sw_share", func(p policy.Policy) any { return p.Clocks.MaxSWShare }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "Azure: logged only; its healthagent: any of 0xE8 is an error", Gpud: "a hardware slowdown in 6 of 10 minutes: inspection", NVSentinel: "asked for, no action", DCGM: "a clock event by heat or power warns"},
		},
		{
			ID: thermal.ID, Title: "the GPU is well below the temperature at which it slows down", Unit: "°C",
			Doc: `Compares the core with the temperature at which the hardware slows itself down: by the margin the GPU gives itself, on
products that do, else by its slowdown threshold. Its maximum operating temperature is no such limit, and going beyond it
is only watched. The memory is compared with its own maximum; where either could not be read the
verdict is open. A reading of 0 °C or less is not believed.`,
			Source:  "nvmlDeviceGetMarginTemperature, nvmlDeviceGetTemperature, nvmlDeviceGetTemperatureThreshold; NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_TEMPERATURE_*_TLIMIT",
			Applies: "every NVIDIA GPU; the margin: Ada, Hopper and later",
			Action:  "drain; watch",
			Cost:    "2 calls a GPU; 3 more at the first reading",
			Thresholds: []Threshold{
				{"thermal.min_margin", func(p policy.Policy) any { return p.Thermal.MinMargin }},
				{"thermal.max_core", func(p policy.Policy) any { return p.Thermal.MaxCore }},
				{"thermal.max_memory", func(p policy.Policy) any { return p.Thermal.MaxMemory }},
			},
			Suites: everySuite, Revision: 2,
			Neighbours: Neighbours{NHC: "Azure healthagent: above 93 °C; gcm: above a limit the user gives", Gpud: "above the maximum operating temperature; margin off by default", NVSentinel: "margin against the slowdown limit less 2 or 3 °C by product", DCGM: "a thermal violation warns"},
		},
		{
			ID: modes.ID, Title: "driver and GPUs are set up for jobs", Unit: "modes",
			Doc: `Reads persistence, compute and MIG mode, and compares the kernel driver's version with its library's. A GPU on which
nothing may compute, and a driver that was updated without a reboot, are faults anywhere; the rest is as policy wants it.`,
			Source:  "nvmlDeviceGetPersistenceMode, nvmlDeviceGetComputeMode, nvmlDeviceGetMigMode, nvmlSystemGetNVMLVersion, nvmlInit_v2",
			Applies: "every NVIDIA GPU",
			Action:  "fix_config; reboot after an update; watch",
			Cost:    "3 calls a GPU; 1 a start for the library",
			Thresholds: []Threshold{
				{"gpu_modes.require_persistence", func(p policy.Policy) any { return p.Modes.RequirePersistence }},
				{"gpu_modes.compute", func(p policy.Policy) any { return p.Modes.Compute }},
				{"gpu_modes.mig", func(p policy.Policy) any { return p.Modes.MIG }},
			},
			Suites: everySuite, Revision: 1,
			Neighbours: Neighbours{NHC: "Azure healthagent: persistence off is an error", Gpud: "persistence off is unhealthy", NVSentinel: "persistence off: warned of by the diagnostic", DCGM: "persistence in the diagnostic only"},
		},
	}
}
