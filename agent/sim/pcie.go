package sim

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writePCI makes sysfs show GPU i behind its port, as the kernel does: the device's folder lies in its port's, and
// bus/pci/devices links to it.
func (s State) writePCI(root string, i int) error {
	g, m := s.GPUs[i], models[s.Model]
	port := portOf(g.PCI)
	domain, _, _ := strings.Cut(g.PCI, ":")
	at := filepath.Join("devices", fmt.Sprintf("pci%s:%s", domain, port[5:7]), port)
	if g.Missing {
		for _, name := range []string{filepath.Join(at, g.PCI), filepath.Join("bus/pci/devices", g.PCI)} {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				return err
			}
		}
		return nil
	}
	numa := "0"
	if i >= (len(s.GPUs)+1)/2 {
		numa = "1"
	}
	speed := func(gen int) string { return pcieSpeeds[max(1, min(gen, len(pcieSpeeds)))-1] }
	files := map[string]map[string]string{
		at: {
			"vendor": "0x8086", "device": "0x352a", "class": "0x060400", "numa_node": numa,
			"current_link_width": fmt.Sprint(g.PCIeWidth), "max_link_width": "16", "current_link_speed": speed(g.PCIeGen), "max_link_speed": speed(m.pcieGen),
			"config": portConfig(g.ACS),
		},
		filepath.Join(at, g.PCI): {
			"vendor": "0x10de", "device": fmt.Sprintf("0x%04x", m.deviceID>>16), "class": "0x030200", "numa_node": numa,
			"current_link_width": fmt.Sprint(g.PCIeWidth), "max_link_width": "16", "current_link_speed": speed(g.PCIeGen), "max_link_speed": speed(m.pcieGen),
			"aer_dev_correctable": aer("COR", g.AERCorrectable, "RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF"),
			"aer_dev_nonfatal":    aer("NONFATAL", g.AERNonFatal, uncorrectable...),
			"aer_dev_fatal":       aer("FATAL", g.AERFatal, uncorrectable...),
		},
	}
	for dir, fs := range files {
		for name, value := range fs {
			if err := s.writeFile(root, filepath.Join(dir, name), value); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{port, g.PCI} {
		dir := at
		if name != port {
			dir = filepath.Join(at, name)
		}
		link := filepath.Join(root, "bus/pci/devices", name)
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("../../..", dir), link); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file of sysfs, a line as the kernel ends it, unless it says so already.
func (State) writeFile(root, name, value string) error {
	path, data := filepath.Join(root, name), []byte(value+"\n")
	if filepath.Base(name) == "config" {
		data = []byte(value)
	}
	if was, err := os.ReadFile(path); err == nil && string(was) == string(data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return replace(path, data)
}

// portOf is the address of the root port above a GPU: on the bus before its own.
func portOf(pci string) string {
	var domain, bus int
	_, _ = fmt.Sscanf(pci, "%x:%x:", &domain, &bus) // our own address()
	return fmt.Sprintf("%04x:%02x:01.0", domain, bus-1)
}

// uncorrectable are the names of uncorrectable AER errors, as the kernel lists them.
var uncorrectable = []string{"Undefined", "DLP", "SDES", "TLP", "FCP", "CmpltTO", "CmpltAbrt", "UnxCmplt", "RxOF", "MalfTLP", "ECRC", "UnsupReq", "ACSViol",
	"UncorrIntErr", "BlockedTLP", "AtomicOpBlocked", "TLPBlockedErr", "PoisonTLPBlocked"}

// aer is one aer_dev_ file: all of count under the second name.
func aer(kind string, count uint64, names ...string) string {
	var b strings.Builder
	for i, name := range names {
		n := uint64(0)
		if i == 1 {
			n = count
		}
		fmt.Fprintf(&b, "%s %d\n", name, n)
	}
	fmt.Fprintf(&b, "TOTAL_ERR_%s %d", kind, count)
	return b.String()
}

// portConfig is a port's configuration space: an ACS capability, which is the first of the extended ones.
func portConfig(redirects bool) string {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint16(b[0x00:], 0x8086)
	binary.LittleEndian.PutUint16(b[0x02:], 0x352a)
	binary.LittleEndian.PutUint32(b[0x100:], 0x0001_000d) // id 0x000d, version 1, no next
	binary.LittleEndian.PutUint16(b[0x104:], 0x001f)      // can validate sources, block, redirect requests and completions, forward
	if redirects {
		binary.LittleEndian.PutUint16(b[0x106:], 0x001d)
	}
	return string(b)
}

// lane is what one lane carries each way by generation, in bytes a second, its encoding off: 8b/10b up to Gen 2, 128b/130b from
// Gen 3, and of Gen 6 242 bytes of each 256. PCI Express Base Specification.
var lane = []float64{0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9}

// copyShare is what copies of a healthy GPU reach of that: 55.6 GB/s of 63 on Gen 5 x16, as NVIDIA's blog on nvbandwidth shows.
const copyShare = 0.88

// copySpeed is how fast copies to and from the host are, each way, in bytes a second.
func (g GPU) copySpeed() float64 {
	v := copyShare * lane[max(1, min(g.PCIeGen, len(lane)))-1] * float64(g.PCIeWidth)
	if g.CopyPercent > 0 {
		v *= float64(g.CopyPercent) / 100
	}
	return max(v, 1e6) // a link without lanes: next to nothing
}

// linked reports whether any NVLink is up.
func (g GPU) linked() bool {
	return slices.ContainsFunc(g.Links, func(l Link) bool { return l.State == "up" })
}
