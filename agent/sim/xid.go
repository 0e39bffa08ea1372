package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// xidTexts are the driver's usual words for the XIDs that stories need, after "pid=…, name=…, ".
var xidTexts = map[int]string{
	13:  "Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Illegal Instruction Encoding",
	31:  "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2a_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
	43:  "Ch 00000008",
	45:  "Ch 00000008",
	48:  "DBE (double bit error) ECC Error has occurred. FBHUB, subpartition 0, partition 1.",
	63:  "Row Remapper: New row (0x000000004cf2e900) marked for remapping, reset gpu to activate.",
	64:  "Row Remapper Error: (0x000000004cf2e900) - Row remapper table full",
	74:  "NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
	79:  "GPU has fallen off the bus.",
	94:  "Contained: SM (0x1). RST: No, D-RST: No",
	95:  "Uncontained: FBHUB. RST: Yes, D-RST: No",
	119: "Timeout after 45s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x2080a0d7 0x4).",
	120: "GSP task exception: instruction access fault (cause:0x1) @ pc:0x0, partition:4#0, task:3",
}

// An XIDVia says by which of its two ways the driver tells of an XID. The zero value is both.
type XIDVia uint8

const (
	LogAndEvent XIDVia = iota
	LogOnly
	EventOnly
)

// XID has GPU gpu's driver tell of an XID: it writes its line to the kernel log, where an empty text stands for its usual
// words, and raises NVML's event. Grammar of the line: NVIDIA open-gpu-kernel-modules, kernel_rc.c.
func XID(dir string, gpu, code int, text string) error {
	return XIDBy(dir, gpu, code, text, LogAndEvent)
}

// XIDBy is XID by one of the two ways, or both.
func XIDBy(dir string, gpu, code int, text string, via XIDVia) error {
	s, err := Read(dir)
	if err != nil {
		return err
	}
	g, err := s.gpu(gpu)
	if err != nil {
		return err
	}
	if via != EventOnly {
		if err := Kmsg(dir, g.xidLine(code, text), KmsgOptions{}); err != nil {
			return err
		}
	}
	if via == LogOnly {
		return nil
	}
	return raise(dir, gpu, code)
}

// raise appends an event to those that NVML tells of: nvmllib/src/state.h, struct sim_event.
func raise(dir string, gpu, code int) error {
	const whole = 1<<32 - 1 // no MIG instance
	var b []byte
	for _, v := range []uint32{uint32(gpu), uint32(code), whole, whole} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return locked(dir, func() error {
		f, err := os.OpenFile(filepath.Join(dir, "nvml.events"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("simulated NVML events: %w", err)
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	})
}

func (g *GPU) xidLine(code int, text string) string {
	if text == "" {
		text = xidTexts[code]
	}
	pci := strings.TrimSuffix(g.PCI, ".0")
	line := fmt.Sprintf("NVRM: Xid (PCI:%s): %d, pid='<unknown>', name=<unknown>", pci, code)
	if text != "" {
		line += ", " + text
	}
	return line
}

// FallOffBus loses GPU gpu as a broken link or power stage does: every call on it answers that it is lost, and the
// kernel log holds the driver's five lines, XID 79 among them.
func FallOffBus(dir string, gpu int) error {
	if err := Set(dir, gpu, map[string]string{"lost": "true"}); err != nil {
		return err
	}
	s, err := Read(dir)
	if err != nil {
		return err
	}
	g := &s.GPUs[gpu]
	if err := raise(dir, gpu, 79); err != nil {
		return err
	}
	return appendKmsg(dir, []string{
		fmt.Sprintf("NVRM: GPU at PCI:%s: %s", strings.TrimSuffix(g.PCI, ".0"), g.UUID),
		fmt.Sprintf("NVRM: GPU Board Serial Number: %s", g.Serial),
		g.xidLine(79, ""),
		fmt.Sprintf("NVRM: GPU %s: GPU has fallen off the bus.", g.PCI),
		fmt.Sprintf("NVRM: GPU %s: GPU serial number is %s.", g.PCI, g.Serial),
	}, KmsgOptions{})
}
