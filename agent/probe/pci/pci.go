// Package pci reads what the kernel shows of a GPU's PCIe link in sysfs. It asks no driver: the files are the kernel's own,
// of the configuration space, and reading them neither waits nor logs.
//
// Sources: Linux Documentation/ABI/testing/sysfs-bus-pci (link width and speed) and sysfs-bus-pci-devices-aer_stats; PCI
// Express Base Specification, 7.7.11 (access control services).
package pci

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/pcie"
)

// A Reader reads one machine's sysfs.
type Reader struct {
	sysfs   string
	virtual bool // a virtual machine: what lies above a GPU is not there
}

// New makes a reader of the tree at sysfs; empty stands for /sys.
func New(sysfs string) *Reader {
	if sysfs == "" {
		sysfs = "/sys"
	}
	return &Reader{sysfs: sysfs, virtual: virtual(filepath.Join(sysfs, "class/dmi/id"))}
}

// Read fills in what sysfs shows of the GPU at a PCI address. What the driver tells of the link is left alone.
func (r *Reader) Read(address string, into *pcie.Reading) {
	into.Have, into.Err = checks.Unread, ""
	if address == "" {
		into.Err = "the GPU's PCI address is not known"
		return
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(r.sysfs, "bus/pci/devices", address))
	if err != nil {
		into.Err = fmt.Sprintf("sysfs shows no PCI device %s", address)
		return
	}
	r.link(dir, into)
	into.Correctable = aer(filepath.Join(dir, "aer_dev_correctable"), "TOTAL_ERR_COR")
	into.NonFatal = aer(filepath.Join(dir, "aer_dev_nonfatal"), "TOTAL_ERR_NONFATAL")
	into.Fatal = aer(filepath.Join(dir, "aer_dev_fatal"), "TOTAL_ERR_FATAL")
	into.HaveACS, into.ACS = r.acs(dir)
}

// link reads width and speed of the link, and what its two ends can do.
func (r *Reader) link(dir string, into *pcie.Reading) {
	width, err := os.ReadFile(filepath.Join(dir, "current_link_width"))
	if errors.Is(err, fs.ErrNotExist) {
		into.Have = checks.NotSupported
		return
	}
	if err != nil {
		into.Err = err.Error()
		return
	}
	into.Width, into.Gen = lanes(string(width)), gen(line(dir, "current_link_speed"))
	into.Most = end(dir)
	if port := filepath.Dir(dir); isAddress(filepath.Base(port)) {
		into.Port = end(port)
	}
	if into.Width == 0 { // all ones, or nothing: the device does not answer
		into.Gen = 0
		into.Err = fmt.Sprintf("current_link_width of %s reads %q", filepath.Base(dir), strings.TrimSpace(string(width)))
		return
	}
	into.Have = checks.Read
}

func end(dir string) pcie.End {
	return pcie.End{Width: lanes(line(dir, "max_link_width")), Gen: gen(line(dir, "max_link_speed"))}
}

// lanes is a width as sysfs writes it; 0 when it is none that PCIe has.
func lanes(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 32 {
		return 0
	}
	return n
}

// speeds are the generations' speeds in GT/s.
var speeds = []float64{2.5, 5, 8, 16, 32, 64}

// gen is the generation of a speed as sysfs writes it, "16.0 GT/s PCIe", "8 GT/s" before Linux 5.5; 0 for "Unknown" and others.
func gen(text string) int {
	number, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	for i, s := range speeds {
		if v == s {
			return i + 1
		}
	}
	return 0
}

// aer is the total of an aer_dev_ file.
func aer(path, total string) counter.Reading {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a kernel without AER, or a platform that keeps it to itself
		return counter.Reading{Have: checks.NotSupported}
	case err != nil:
		return counter.Reading{}
	}
	for l := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), " ")
		if name != total {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return counter.Reading{}
		}
		return counter.Of(n)
	}
	return counter.Reading{}
}

// Extended capabilities start here; the first 256 bytes of the configuration space are anybody's to read, the rest root's.
const (
	extended = 0x100
	capACS   = 0x000d
	// acsRedirect: P2P request redirect and P2P completion redirect send what one GPU writes to another by way of the root.
	acsRedirect = 1<<2 | 1<<3
)

// acs names the bridges above the device that redirect peer-to-peer traffic.
func (r *Reader) acs(dir string) (checks.Availability, []string) {
	if r.virtual {
		return checks.NotSupported, nil
	}
	have := checks.NotSupported
	var redirects []string
	for d := filepath.Dir(dir); isAddress(filepath.Base(d)); d = filepath.Dir(d) {
		control, found, err := acsControl(filepath.Join(d, "config"))
		if err != nil {
			return checks.Unread, nil
		}
		if !found {
			continue
		}
		have = checks.Read
		if control&acsRedirect != 0 {
			redirects = append(redirects, filepath.Base(d))
		}
	}
	return have, redirects
}

// acsControl reads a bridge's ACS control register; found is false where it has none. A configuration space that ends before
// the extended part cannot be read by who asks.
func acsControl(path string) (control uint16, found bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	var b [4]byte
	at := int64(extended)
	for range (4096 - extended) / 8 { // as many as there is room for: a list that loops ends
		if _, err := f.ReadAt(b[:], at); err != nil {
			return 0, false, err
		}
		head := binary.LittleEndian.Uint32(b[:])
		if head == 0 || head == 1<<32-1 {
			return 0, false, nil
		}
		if head&0xffff == capACS {
			if _, err := f.ReadAt(b[:], at+4); err != nil {
				return 0, false, err
			}
			return binary.LittleEndian.Uint16(b[2:]), true, nil
		}
		if at = int64(head >> 20); at < extended {
			return 0, false, nil
		}
	}
	return 0, false, nil
}

// isAddress reports whether a folder's name is a PCI address, as 0000:3b:00.0, and not that of the bus it hangs on.
func isAddress(name string) bool {
	return len(name) >= 12 && strings.Count(name, ":") == 2 && strings.Contains(name, ".") && !strings.HasPrefix(name, "pci")
}

// machines are what hypervisors put into DMI. Source: systemd, src/basic/virt.c.
var machines = []string{"KVM", "OpenStack", "KubeVirt", "Amazon EC2", "QEMU", "VMware", "innotek GmbH", "VirtualBox", "Xen", "Bochs", "Parallels", "BHYVE",
	"Hyper-V", "Google Compute Engine", "Virtual Machine"}

// virtual reports whether DMI names a virtual machine. EC2 names its bare metal by the product.
func virtual(dmi string) bool {
	product := line(dmi, "product_name")
	if strings.HasSuffix(product, ".metal") || strings.Contains(product, ".metal-") {
		return false
	}
	for _, text := range []string{product, line(dmi, "sys_vendor"), line(dmi, "board_vendor"), line(dmi, "bios_vendor")} {
		for _, m := range machines {
			if strings.HasPrefix(text, m) {
				return true
			}
		}
	}
	return false
}

func line(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
