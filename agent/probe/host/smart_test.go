package host

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"testing"
	"unsafe"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/nvme"
)

// A page as the specification lays it out, to the reading that is judged.
func TestHealthLog(t *testing.T) {
	if n := unsafe.Sizeof(adminCommand{}); n != ioctlAdmin>>16&0x3fff {
		t.Errorf("the command has %d bytes, the number of the call says %d", n, ioctlAdmin>>16&0x3fff)
	}
	page := make([]byte, healthBytes)
	page[0], page[3], page[4], page[5] = 5, 9, 10, 255
	binary.LittleEndian.PutUint64(page[160:], 77)
	read := func() nvme.Health { return healthOf(record(Texts{"smart/nvme0": healthText(page)}), "nvme0") }
	want := nvme.Health{Have: checks.Read, Warning: 5, Spare: 9, Threshold: 10, Used: 255, MediaErrors: 77}
	if got := read(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	page[170] = 1
	if got := read(); got.MediaErrors != math.MaxUint64 {
		t.Errorf("more than 64 bits: %+v", got)
	}
	for text, want := range map[string]nvme.Health{
		"error:operation not permitted":   {Err: "operation not permitted", Refused: true},
		"error:get log page: status 0x1":  {Err: "get log page: status 0x1"},
		"error:no such file or directory": {Have: checks.NotSupported},
		"error:no such device":            {Have: checks.NotSupported},
		"nonsense":                        {Err: "not given"},
	} {
		if got := healthOf(record(Texts{"smart/nvme0": text}), "nvme0"); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if got := healthOf(record(Texts{}), "nvme0"); !reflect.DeepEqual(got, nvme.Health{Have: checks.NotSupported}) {
		t.Errorf("no such disk: %+v", got)
	}
}

func TestOnlyDisksOfThisMachineAreAsked(t *testing.T) {
	for _, s := range []struct{ sysfs, name string }{{t.TempDir(), "nvme0"}, {"/sys", "null"}, {"/sys", "nvme"}, {"/sys", "nvme0n1"}, {"/sys", "nvme99999"}, {"/sys", "../null"}} {
		if _, err := (System{Sysfs: s.sysfs, Proc: "/proc"}).Text("smart/" + s.name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of %s: %v", s.name, s.sysfs, err)
		}
	}
}
