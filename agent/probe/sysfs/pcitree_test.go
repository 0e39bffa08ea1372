package sysfs

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/assay-gpu/assay/checks/aer"
)

// device makes one device below root as the kernel shows it: a folder below its bridges, and a link to it.
func device(t *testing.T, root, path, vendor, class string) {
	t.Helper()
	name := filepath.Base(path)
	dir := filepath.Join(root, "devices", path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"vendor": vendor, "class": class} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := filepath.Join(root, "bus/pci/devices")
	if err := os.MkdirAll(all, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../devices/"+path, filepath.Join(all, name)); err != nil {
		t.Fatal(err)
	}
}

func TestPCITree(t *testing.T) {
	root := t.TempDir()
	device(t, root, "pci0000:00/0000:00:02.0", "0x8086", "0x060400")
	device(t, root, "pci0000:00/0000:00:02.0/0000:02:00.0", "0x10de", "0x030000")
	device(t, root, "pci0000:00/0000:00:02.0/0000:02:00.1", "0x10de", "0x040300") // its audio
	device(t, root, "pci0009:00/0009:00:00.0", "0x1000", "0x060400")
	device(t, root, "pci0009:00/0009:00:00.0/0009:01:00.0", "0x1000", "0x060400")
	device(t, root, "pci0009:00/0009:00:00.0/0009:01:00.0/0009:02:10.0", "0x1000", "0x060400")
	device(t, root, "pci0009:00/0009:00:00.0/0009:01:00.0/0009:02:10.0/0009:04:00.0", "0x10de", "0x030200")
	device(t, root, "pci0000:00/0000:00:1f.2", "0x8086", "0x010601")
	device(t, root, "pci10000:e0/10000:e0:06.0", "0x8086", "0x060400") // a VMD's domain
	if err := os.WriteFile(filepath.Join(root, "bus/pci/devices/README"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := PCITree(root)
	want := aer.Tree{
		Parent: map[string]string{
			"0000:02:00.0": "0000:00:02.0", "0000:02:00.1": "0000:00:02.0", "0009:01:00.0": "0009:00:00.0", "0009:02:10.0": "0009:01:00.0",
			"0009:04:00.0": "0009:02:10.0",
		},
		GPUs: []string{"0000:02:00.0", "0009:04:00.0"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for port, gpu := range map[string]string{"0000:00:02.0": "0000:02:00.0", "0009:00:00.0": "0009:04:00.0", "0009:02:10.0": "0009:04:00.0"} {
		if below := got.Below(port); len(below) != 1 || below[0] != gpu {
			t.Errorf("below %s: %v", port, below)
		}
	}
}

func TestNoSysfsIsAnEmptyTree(t *testing.T) {
	if got := PCITree(t.TempDir()); got.Parent != nil || got.GPUs != nil {
		t.Errorf("got %v", got)
	}
}
