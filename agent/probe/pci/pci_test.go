package pci

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/pcie"
)

const gpu = "0000:3b:00.0"

// A tree is a sysfs tree: a GPU below a switch port below a root port.
type tree struct {
	t    *testing.T
	root string
}

const (
	rootPort   = "devices/pci0000:3a/0000:3a:01.0"
	switchPort = rootPort + "/0000:3a:02.0"
	device     = switchPort + "/" + gpu
)

func newTree(t *testing.T) tree {
	tr := tree{t, t.TempDir()}
	for name, text := range map[string]string{
		"current_link_width": "16\n", "max_link_width": "16\n", "current_link_speed": "32.0 GT/s PCIe\n", "max_link_speed": "32.0 GT/s PCIe\n",
		"aer_dev_correctable": "RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n", "aer_dev_nonfatal": "UnsupReq 4\nTOTAL_ERR_NONFATAL 4\n", "aer_dev_fatal": "DLP 0\nTOTAL_ERR_FATAL 0\n",
	} {
		tr.write(device+"/"+name, text)
	}
	for _, port := range []string{rootPort, switchPort} {
		tr.write(port+"/max_link_width", "16\n")
		tr.write(port+"/max_link_speed", "32.0 GT/s PCIe\n")
		tr.write(port+"/config", config(0))
	}
	tr.link(device)
	return tr
}

func (tr tree) write(name, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) link(dir string) {
	tr.t.Helper()
	at := filepath.Join(tr.root, "bus/pci/devices")
	if err := os.MkdirAll(at, 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.Symlink("../../../"+dir, filepath.Join(at, filepath.Base(dir))); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) remove(name string) {
	tr.t.Helper()
	if err := os.RemoveAll(filepath.Join(tr.root, name)); err != nil {
		tr.t.Fatal(err)
	}
}

// config is a configuration space with an AER capability, then one of ACS with this control register.
func config(control uint16) string {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint32(b[0x100:], 0x1480_0001) // AER, next at 0x148
	binary.LittleEndian.PutUint32(b[0x148:], 0x0001_000d) // ACS, the last
	binary.LittleEndian.PutUint16(b[0x14c:], 0x5f)
	binary.LittleEndian.PutUint16(b[0x14e:], control)
	return string(b)
}

func TestRead(t *testing.T) {
	full := pcie.End{Width: 16, Gen: 5}
	healthy := pcie.Reading{
		Have: checks.Read, Width: 16, Gen: 5, Most: full, Port: full, Correctable: counter.Of(3), NonFatal: counter.Of(4), Fatal: counter.Of(0), HaveACS: checks.Read,
	}
	for _, tt := range []struct {
		name   string
		change func(tree)
		want   func(*pcie.Reading)
	}{
		{"healthy", func(tree) {}, func(*pcie.Reading) {}},
		{"narrow and slow", func(tr tree) {
			tr.write(device+"/current_link_width", "8\n")
			tr.write(device+"/current_link_speed", "2.5 GT/s PCIe\n")
		}, func(r *pcie.Reading) { r.Width, r.Gen = 8, 1 }},
		{"a port that can do less", func(tr tree) {
			tr.write(switchPort+"/max_link_width", "8\n")
			tr.write(switchPort+"/max_link_speed", "8 GT/s\n")
		}, func(r *pcie.Reading) { r.Port = pcie.End{Width: 8, Gen: 3} }},
		{"a speed the kernel does not know", func(tr tree) { tr.write(device+"/current_link_speed", "Unknown\n") }, func(r *pcie.Reading) { r.Gen = 0 }},
		{"a device that no longer answers reads all ones", func(tr tree) { tr.write(device+"/current_link_width", "63\n") }, func(r *pcie.Reading) {
			r.Have, r.Width, r.Gen, r.Err = checks.Unread, 0, 0, `current_link_width of 0000:3b:00.0 reads "63"`
		}},
		{"no link to read: not supported", func(tr tree) { tr.remove(device + "/current_link_width") }, func(r *pcie.Reading) {
			r.Have, r.Width, r.Gen, r.Most, r.Port = checks.NotSupported, 0, 0, pcie.End{}, pcie.End{}
		}},
		{"a kernel without AER: not zero errors", func(tr tree) {
			tr.remove(device + "/aer_dev_correctable")
			tr.remove(device + "/aer_dev_nonfatal")
			tr.remove(device + "/aer_dev_fatal")
		}, func(r *pcie.Reading) {
			no := counter.Reading{Have: checks.NotSupported}
			r.Correctable, r.NonFatal, r.Fatal = no, no, no
		}},
		{"AER totals that are no numbers: not zero errors", func(tr tree) {
			tr.write(device+"/aer_dev_correctable", "RxErr 1\nTOTAL_ERR_COR many\n")
			tr.write(device+"/aer_dev_fatal", "")
		}, func(r *pcie.Reading) { r.Correctable, r.Fatal = counter.Reading{}, counter.Reading{} }},
		{"two bridges redirect", func(tr tree) {
			tr.write(switchPort+"/config", config(0x1d))
			tr.write(rootPort+"/config", config(0x04))
		}, func(r *pcie.Reading) { r.ACS = []string{"0000:3a:02.0", "0000:3a:01.0"} }},
		{"a bridge that only checks sources", func(tr tree) { tr.write(switchPort+"/config", config(0x01)) }, func(*pcie.Reading) {}},
		{"no bridge has ACS", func(tr tree) {
			tr.write(switchPort+"/config", strings.Repeat("\x00", 4096))
			tr.write(rootPort+"/config", strings.Repeat("\xff", 4096))
		}, func(r *pcie.Reading) { r.HaveACS = checks.NotSupported }},
		{"a capability list that loops", func(tr tree) {
			b := []byte(config(0x1d))
			binary.LittleEndian.PutUint32(b[0x148:], 0x1000_0001)
			tr.write(switchPort+"/config", string(b))
		}, func(*pcie.Reading) {}},
		{"not root: the extended space cannot be read", func(tr tree) { tr.write(switchPort+"/config", config(0x1d)[:64]) }, func(r *pcie.Reading) { r.HaveACS = checks.Unread }},
		{"a virtual machine has no bridges to judge", func(tr tree) {
			tr.write("class/dmi/id/sys_vendor", "Microsoft Corporation\n")
			tr.write("class/dmi/id/product_name", "Virtual Machine\n")
			tr.write(switchPort+"/config", config(0x1d))
		}, func(r *pcie.Reading) { r.HaveACS = checks.NotSupported }},
		{"EC2's bare metal is none", func(tr tree) {
			tr.write("class/dmi/id/sys_vendor", "Amazon EC2\n")
			tr.write("class/dmi/id/product_name", "p5.48xlarge.metal\n")
		}, func(*pcie.Reading) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTree(t)
			tt.change(tr)
			want := healthy
			tt.want(&want)
			// What the driver told before stays.
			got := pcie.Reading{Busy: checks.Read, Percent: 7, Replays: counter.Of(9)}
			want.Busy, want.Percent, want.Replays = got.Busy, got.Percent, got.Replays
			New(tr.root).Read(gpu, &got)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\ngot  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestADeviceThatIsNotThere(t *testing.T) {
	for address, want := range map[string]string{"0000:99:00.0": "sysfs shows no PCI device 0000:99:00.0", "": "the GPU's PCI address is not known"} {
		var r pcie.Reading
		New(newTree(t).root).Read(address, &r)
		if r.Have != checks.Unread || r.Err != want {
			t.Errorf("%q: %+v", address, r)
		}
	}
}

func TestGen(t *testing.T) {
	for text, want := range map[string]int{
		"2.5 GT/s PCIe": 1, "5.0 GT/s PCIe": 2, "8.0 GT/s PCIe": 3, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5, "64.0 GT/s PCIe": 6, "8 GT/s": 3, "5 GT/s\n": 2,
		"Unknown": 0, "Unknown speed": 0, "": 0, "7 GT/s": 0,
	} {
		if got := gen(text); got != want {
			t.Errorf("%q: generation %d, want %d", text, got, want)
		}
	}
}
