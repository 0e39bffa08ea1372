package host

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/fabric"
)

func TestManagerOf(t *testing.T) {
	const device, stat = switchesAt + "/0000:05:00.0/information", "812 (nv-fabricmanage) S 1 1"
	const head = "  sl  local_address rem_address   st tx_queue\n"
	for _, tt := range []struct {
		name  string
		texts Texts
		want  fabric.Manager
	}{
		{"no switch", Texts{"proc/812/stat": stat}, fabric.Manager{Have: checks.NotSupported}},
		{"a driver that found none", Texts{switchesAt: "", "proc/812/stat": stat}, fabric.Manager{Have: checks.NotSupported}},
		{"the process runs", Texts{device: "", "proc/1/stat": "1 (systemd) S", "proc/812/stat": stat}, fabric.Manager{Have: checks.Read, Switches: 1, Running: true}},
		{"another process", Texts{device: "", "proc/812/stat": "812 (nv-fabricmanag) S 1"}, fabric.Manager{Have: checks.Read, Switches: 1}},
		{"only its port, by the second table", Texts{device: "", "proc/1/stat": "1 (x) S", "proc/net/tcp": head, "proc/net/tcp6": head + "   0: 00000000:1A0A 00000000:0000 0A 00000000\n"}, fabric.Manager{Have: checks.Read, Switches: 1, Running: true}},
		{"a connection to that port elsewhere", Texts{device: "", "proc/1/stat": "1 (x) S", "proc/net/tcp": head + "   0: 0100007F:9C40 0100007F:1A0A 01 0\n   1: 0100007F:1A0A 0100007F:9C40 01 0\n"}, fabric.Manager{Have: checks.Read, Switches: 1}},
		{"switches not read", Texts{switchesAt: errorPrefix + syscall.EACCES.Error()}, fabric.Manager{Err: "nvswitch: " + fs.ErrPermission.Error()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := 0
			r := record(tt.texts)
			got := managerOf(r, &pid)
			if got.Have != tt.want.Have || got.Switches != tt.want.Switches || got.Running != tt.want.Running || (got.Err != "") != (tt.want.Err != "") || !strings.HasPrefix(got.Err, strings.SplitN(tt.want.Err, ":", 2)[0]) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			pid = 0
			if again := managerOf(record(r.got), &pid); again != got {
				t.Errorf("from its own texts: %+v, before %+v", again, got)
			}
		})
	}
}

// The process seen last is looked at first, and looked for anew when its pid is another's.
func TestManagerRestarts(t *testing.T) {
	texts := Texts{switchesAt + "/0000:05:00.0/information": "", "proc/812/stat": "812 (bash) S", "proc/900/stat": "900 (nv-fabricmanage) S"}
	pid := 812
	if got := managerOf(record(texts), &pid); !got.Running || pid != 900 {
		t.Errorf("%+v, pid %d", got, pid)
	}
}
