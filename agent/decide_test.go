package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/aer"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/clocks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/cpu"
	"github.com/assay-gpu/assay/checks/driver"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/fabric"
	"github.com/assay-gpu/assay/checks/kernel"
	"github.com/assay-gpu/assay/checks/leftover"
	"github.com/assay-gpu/assay/checks/memory"
	"github.com/assay-gpu/assay/checks/modes"
	"github.com/assay-gpu/assay/checks/mounts"
	"github.com/assay-gpu/assay/checks/nvlink"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/pcie"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/port"
	"github.com/assay-gpu/assay/checks/processes"
	"github.com/assay-gpu/assay/checks/recovery"
	"github.com/assay-gpu/assay/checks/retired"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/thermal"
	"github.com/assay-gpu/assay/checks/timesync"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// TestDecide runs the stories under testdata/decide. Each directive is a change to a node that is well: certified,
// acting, two GPUs, everything fresh.
//
//	decide [state] [job] [suite] [permit]
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "decide" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			s, r := wellState(), NewHookRequest(Prolog, map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0"})
			for _, a := range d.CmdArgs {
				story(t, d, &s, &r, a.Key, strings.Join(a.Vals, ","))
			}
			return show(Decide(s, r))
		})
	})
}

func show(d Decision) string {
	var b strings.Builder
	b.WriteString(string(d.Next))
	if d.Next == Answer {
		fmt.Fprintf(&b, " exit=%d %s", d.Exit, d.Outcome)
	}
	if d.OwnGPU {
		b.WriteString(" own-gpu")
	}
	b.WriteString("\n")
	if d.Why != "" {
		b.WriteString(d.Why + "\n")
	}
	return b.String()
}

func wellGPUs() []checks.GPU {
	return []checks.GPU{
		{Node: "n1", UUID: "GPU-a", Index: 0, PCI: "0000:3b:00.0", Name: "H100", Serial: "s0"},
		{Node: "n1", UUID: "GPU-b", Index: 1, PCI: "0000:5e:00.0", Name: "H100", Serial: "s1"},
	}
}

// wellState is a node whose prolog passes on its certificate.
func wellState() State {
	p := policy.Default()
	p.Mode = policy.Act
	now := 10 * time.Hour
	contact := now - 5*time.Second
	return State{
		Now: now, BootID: "boot-1", Driver: "550.1", Known: true, Managed: true, Node: "certified", Policy: p,
		Held: &Held{
			GrantedCertificate: wire.GrantedCertificate{Certificate: certificate.Certificate{
				Serial: 5, Node: "n1", GPUs: []string{"GPU-a", "GPU-b"}, Level: checks.Quick, Driver: "550.1", BootID: "boot-1",
			}},
			Expires: now + time.Hour, GraceUntil: now + 2*time.Hour,
		},
		Snapshot: &Seen{At: now - 10*time.Second, Clean: true},
		Kernel:   KernelState{Drained: true},
		Contact:  &contact,
		GPUs:     wellGPUs(),
	}
}

func wellSnapshot() catalog.Snapshot {
	s := catalog.Snapshot{Node: "n1", BootID: "boot-1", Driver: "550.1", Init: driver.Init{OK: true}, Count: 2, At: time.Unix(1_700_000_000, 0), Host: wellHost()}
	for _, g := range wellGPUs() {
		s.GPUs = append(s.GPUs, catalog.GPUState{
			GPU: g, ECC: ecc.Reading{Have: checks.Read, Enabled: true, HaveSRAM: checks.Read}, RowRemap: rowremap.Reading{Have: checks.Read}, Recovery: recovery.Reading{Have: checks.Read},
			// The rest it does not have, so that a story is about what it sets.
			Retired: retired.Reading{Have: checks.NotSupported}, NVLink: nvlink.Reading{Have: checks.NotSupported}, PCIe: pcie.Reading{Have: checks.NotSupported, Replays: counter.Reading{Have: checks.NotSupported}},
			Clocks: clocks.Reading{Have: checks.NotSupported}, Thermal: thermal.Reading{Core: thermal.Degrees{Have: checks.NotSupported}},
			Modes:  modes.Reading{HavePersistence: checks.NotSupported, HaveCompute: checks.NotSupported, HaveMIG: checks.NotSupported},
			Fabric: fabric.Reading{Have: checks.NotSupported}, Leftover: leftover.Reading{Have: checks.Read},
		})
	}
	return s
}

// wellHost is a node without a fault: no ports, no disks, and nothing wrong with the rest.
func wellHost() catalog.HostState {
	none := port.Reading{Have: checks.NotSupported}
	return catalog.HostState{
		Infiniband: none, Ethernet: none, Mounts: mounts.Reading{Have: checks.Read}, Memory: memory.Reading{Have: checks.Read, EDAC: checks.NotSupported},
		CPU: cpu.Reading{Have: checks.Read, Clock: "tsc"}, Processes: processes.Reading{Have: checks.Read}, Kernel: kernel.Reading{Have: checks.Read},
		NVMe: nvme.Reading{Have: checks.NotSupported}, FabricManager: fabric.Manager{Have: checks.NotSupported}, TimeSync: timesync.Reading{Have: checks.Read, Synced: true},
	}
}

// story applies one word of a directive.
func story(t *testing.T, d *datadriven.TestData, s *State, r *HookRequest, key, val string) {
	t.Helper()
	dur := func() time.Duration {
		v, err := time.ParseDuration(val)
		if err != nil {
			d.Fatalf(t, "%s=%s: %v", key, val, err)
		}
		return v
	}
	switch key {
	// the state
	case "unknown":
		s.Known = false
	case "unmanaged":
		s.Managed = false
	case "state":
		s.Node = val
	case "marks":
		s.Marks = strings.Split(val, ",")
	case "mode":
		s.Policy.Mode = policy.Mode(val)
	case "observe": // a check
		s.Policy.Checks = map[string]policy.Check{val: {Mode: policy.Observe}}
	case "act": // a check
		s.Policy.Checks = map[string]policy.Check{val: {Mode: policy.Act}}
	case "off": // a check
		s.Policy.Checks = map[string]policy.Check{val: {Mode: policy.Off}}
	case "fail-mode":
		s.Policy.Hooks.FailMode = val
	case "no-certificate":
		s.Held = nil
	case "covers":
		s.Held.GPUs = strings.Split(val, ",")
	case "cert-boot":
		s.Held.BootID = val
	case "cert-driver":
		s.Held.Driver = val
	case "suspended":
		s.Held.Suspended = true
	case "untrusted":
		s.Held.Untrusted = val
	case "grace-left":
		s.Held.GraceUntil = s.Now + dur()
	case "left":
		s.Held.Expires = s.Now + dur()
	case "tombstone":
		s.Tombstone = &Tombstone{Reason: "xid 79", BootID: "boot-1"}
		if _, err := fmt.Sscan(val, &s.Tombstone.Serial); err != nil {
			d.Fatalf(t, "tombstone=%s: %v", val, err)
		}
	case "no-snapshot":
		s.Snapshot = nil
	case "snapshot-age":
		s.Snapshot.At = s.Now - dur()
	case "unclean":
		s.Snapshot.Clean, s.Snapshot.Why = false, val
	case "kernel-behind":
		s.Kernel.Drained = false
	case "kernel-err":
		s.Kernel.Err = val
	case "kernel-lost-ago":
		s.Kernel.Lost, s.Kernel.LostAt = 12, s.Now-dur()
	case "no-contact":
		s.Contact = nil
	case "contact-ago":
		at := s.Now - dur()
		s.Contact = &at
	// the job
	case "hook":
		r.Hook = Hook(val)
	case "gpus":
		r.GPUs = ParseGPUs(val, "")
	// what the suite found
	case "suite":
		suite(t, d, s, r, val)
	case "permit":
		switch val {
		case "granted":
			r.Permit = &Permit{Answered: true, Granted: true, Reason: "assay:Q-7F3K " + "row remap"}
		case "refused":
			r.Permit = &Permit{Answered: true, Reason: "held_back: fleet budget 1 of 1 an hour"}
		case "silent":
			r.Permit = &Permit{Reason: "no answer within 4s"}
		default:
			d.Fatalf(t, "permit=%s", val)
		}
	default:
		d.Fatalf(t, "unknown word %q", key)
	}
}

func suite(t *testing.T, d *datadriven.TestData, s *State, r *HookRequest, what string) {
	t.Helper()
	snap := wellSnapshot()
	in := SuiteInput{Level: checks.Quick, Policy: s.Policy, Expected: &checks.Inventory{Node: "n1", GPUs: wellGPUs(), Driver: "550.1"}}
	switch what {
	case "clean":
	case "remap-failed":
		snap.GPUs[1].RowRemap.Failed = true
	case "remap-many":
		snap.GPUs[1].RowRemap.Correctable = 11
	case "remap-pending":
		snap.GPUs[1].RowRemap.Pending = true
	case "gpu-lost":
		snap.GPUs[1].Call = driver.Call{Lost: true}
	case "gpu-missing":
		snap.GPUs, snap.Count = snap.GPUs[:1], 1
	case "gpu-missing+remap-failed":
		snap.GPUs, snap.Count = snap.GPUs[:1], 1
		snap.GPUs[0].RowRemap.Failed = true
	case "gpu-lost+xid79":
		snap.GPUs[1].Call, snap.At = driver.Call{Lost: true}, snap.At.Add(time.Second)
		in.Kernel = catalog.JudgeLog([]catalog.LogEvent{event(t, "NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")}, snap.Inventory(), aer.Tree{}, s.Policy)
	case "unread":
		snap.GPUs[0].ECC = ecc.Reading{Err: "timed out"}
	case "late":
		in.Err = "the quick suite did not end within its 14s"
	case "kernel-unread":
		in.KernelOK = s.kernelDoubt()
	case "xid79":
		in.Kernel = catalog.JudgeLog([]catalog.LogEvent{event(t, "NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")}, snap.Inventory(), aer.Tree{}, s.Policy)
	default:
		d.Fatalf(t, "suite=%s", what)
	}
	in.Snapshot = snap
	res := Judge(in)
	r.Suite = &res
}

func event(t *testing.T, line string) catalog.LogEvent {
	t.Helper()
	s := sight(nil, KernelRecord{Line: line, At: time.Unix(1_700_000_000, 0)})
	if len(s) != 1 {
		t.Fatalf("%d events in %q", len(s), line)
	}
	return s[0].event
}
