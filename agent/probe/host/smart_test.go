package host

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/nvme"
	"github.com/assay-gpu/assay/checks/policy"
)

// A page as the specification lays it out, to the reading that is judged.
func TestHealthLog(t *testing.T) {
	if n := unsafe.Sizeof(adminCommand{}); n != ioctlAdmin>>16&0x3fff {
		t.Errorf("the command has %d bytes, the number of the call says %d", n, ioctlAdmin>>16&0x3fff)
	}
	page := make([]byte, healthBytes)
	page[0], page[3], page[4], page[5] = 5, 9, 10, 255
	binary.LittleEndian.PutUint64(page[160:], 77)
	read := func() nvme.Health { return healthOf(healthText(page), nil) }
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
		if got := healthOf(Texts{"smart/nvme0": text}.Text("smart/nvme0")); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	if got := healthOf(Texts{}.Text("smart/nvme0")); !reflect.DeepEqual(got, nvme.Health{Have: checks.NotSupported}) {
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

// disks is a machine with one disk, which counts how often it is asked.
type disks struct {
	Texts
	asked *int
}

func (d disks) Text(name string) (string, error) {
	if name == "smart/nvme0" {
		*d.asked++
	}
	return d.Texts.Text(name)
}

// A disk is asked once in ten minutes, and when it is another disk, and in a screen; in between its last word stands, with
// its age, in the texts too.
func TestHealthLogsStandForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		texts := Texts{"sys/class/nvme/nvme0/state": "live", "sys/class/nvme/nvme0/serial": "A", "smart/nvme0": "critical_warning=0 available_spare=90"}
		p := New(disks{texts, &asked})
		read := func(wantAsked int, want nvme.Health) {
			t.Helper()
			want.Have = checks.Read
			h, got := p.Read(t.Context(), time.Minute, policy.Default())
			if health := h.NVMe.Disks[0].Health; asked != wantAsked || health != want {
				t.Errorf("asked %d times: %+v; want %d times: %+v", asked, health, wantAsked, want)
			}
			if again, _ := New(got).Read(t.Context(), time.Minute, policy.Default()); !reflect.DeepEqual(again.NVMe, h.NVMe) {
				t.Errorf("its texts give %+v, want %+v", again.NVMe, h.NVMe)
			}
		}
		read(1, nvme.Health{Spare: 90})
		texts["smart/nvme0"] = "critical_warning=4 available_spare=5"
		time.Sleep(10*time.Minute - time.Second)
		read(1, nvme.Health{Spare: 90, Age: 599})
		time.Sleep(time.Second)
		read(2, nvme.Health{Warning: 4, Spare: 5})
		time.Sleep(time.Minute)
		p.Renew()
		read(3, nvme.Health{Warning: 4, Spare: 5})
		texts["sys/class/nvme/nvme0/serial"] = "B"
		read(4, nvme.Health{Warning: 4, Spare: 5})
		texts["sys/class/nvme/nvme0/state"] = "resetting" // not asked, and forgotten
		p.Read(t.Context(), time.Minute, policy.Default())
		texts["sys/class/nvme/nvme0/state"] = "live"
		read(5, nvme.Health{Warning: 4, Spare: 5})
	})
}
