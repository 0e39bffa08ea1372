package dcgm

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

func TestJudgeHealth(t *testing.T) {
	two := []HealthGPU{{0, "GPU-a", "0000:1b:00.0"}, {1, "GPU-b", "0000:43:00.0"}}
	read := func(incidents ...Incident) Health {
		return Health{Have: checks.Read, Watched: time.Minute, GPUs: two, Incidents: incidents}
	}
	known := []checks.GPU{{UUID: "GPU-b", Index: 0, PCI: "0000:43:00.0"}, {UUID: "GPU-a", Index: 1, PCI: "0000:1b:00.0"}}
	for _, tt := range []struct {
		name   string
		h      Health
		change func(*policy.DCGM)
		want   string // one line a finding
	}{
		{"nobody asked", Health{}, nil, "node: unknown none: DCGM gave no answer: nobody says why"},
		{"the host engine is away", Health{Err: "connection refused"}, nil, "node: unknown none: DCGM gave no answer: connection refused"},
		{"no DCGM", Health{Have: checks.NotSupported}, nil, "node: not_applicable none: no DCGM on this node"},
		{"no DCGM, and policy wants it", Health{Have: checks.NotSupported, Err: "no library"}, func(p *policy.DCGM) { p.Required = true },
			"node: unknown none: policy requires DCGM, and it is not there: no library"},
		{"a process that cannot be ended", Health{Stuck: "dcgmHealthCheck"}, nil, "node: fail reboot hard: a process that called dcgmHealthCheck is still there after SIGKILL"},
		{"all well", read(), nil, "gpu 1 GPU-a: pass none: no incident\ngpu 0 GPU-b: pass none: no incident"},
		{"watched for too short a time", Health{Have: checks.Read, Watched: time.Minute - 1, GPUs: two[:1]}, nil, "gpu 1 GPU-a: unknown none: no incident, but watched for 1m0s of 1m only"},
		{"no settling wanted", Health{Have: checks.Read, GPUs: two[:1]}, func(p *policy.DCGM) { p.Settle = 0 }, "gpu 1 GPU-a: pass none: no incident"},
		{"an incident counts at once", Health{Have: checks.Read, GPUs: two[:1], Incidents: []Incident{{0x10, 20, 4, "DBE", OfGPU, 0}}}, nil,
			"gpu 1 GPU-a: fail drain code=4: memory: DBE (VOLATILE_DBE_DETECTED)"},
		{"a warning that asks for nothing", read(Incident{0x80, 10, 10, "hot", OfGPU, 1}), nil,
			"gpu 0 GPU-b: pass watch code=10: thermal: hot (CLOCKS_EVENT_THERMAL); DCGM says to watch it\ngpu 1 GPU-a: pass none: no incident\ngpu 0 GPU-b: pass none: no incident"},
		{"a failure of a code that nobody knows", read(Incident{0x4000, 20, 999, "new", OfGPU, 0}), nil,
			"gpu 1 GPU-a: fail drain code=999: system 0x4000: new\ngpu 0 GPU-b: pass none: no incident"},
		{"a switch and a CPU are the node's", read(Incident{0x800, 20, 15, "fatal", OfSwitch, 3}, Incident{0x200, 10, 19, "odd", OfCPU, 1}), nil,
			"node: fail drain code=15: NVSwitch 3: NVSwitch (fatal): fatal (NVSWITCH_FATAL_ERROR)\nnode: pass watch code=19: CPU 1: driver: odd (NVML_API); DCGM says to watch it\n" +
				"gpu 1 GPU-a: pass none: no incident\ngpu 0 GPU-b: pass none: no incident"},
		{"an action by policy", read(Incident{0x10, 20, 4, "DBE", OfGPU, 0}), func(p *policy.DCGM) { p.Actions = map[int]string{4: "watch"} },
			"gpu 1 GPU-a: not_applicable watch code=4: memory: DBE (VOLATILE_DBE_DETECTED); action by policy\ngpu 1 GPU-a: pass none: no incident\ngpu 0 GPU-b: pass none: no incident"},
		{"a GPU nobody else knows", Health{Have: checks.Read, Watched: time.Hour, GPUs: []HealthGPU{{5, "GPU-z", "0000:FF:00.0"}}}, nil, "gpu 5 GPU-z: pass none: no incident"},
		{"more incidents than there is room for", Health{Have: checks.Read, Watched: time.Hour, Full: true, GPUs: two[:1]}, nil,
			"gpu 1 GPU-a: unknown none: DCGM reports as many incidents as it has room for; there may be more"},
		{"no GPU", Health{Have: checks.Read, Watched: time.Hour}, nil, "node: unknown none: DCGM knows no GPU"},
		{"DCGM resets by itself", Health{Have: checks.Read, Watched: time.Hour, GPUs: two[:1], Policies: []Policy{{0, 1, 0, 1}, {1, 1, 0, 0}}}, nil,
			"gpu 1 GPU-a: pass none: no incident\ngpu 1 GPU-a: pass watch: a policy of DCGM's own resets this GPU: two masters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := policy.Default().DCGM
			if tt.change != nil {
				tt.change(&p)
			}
			var got []string
			for _, f := range JudgeHealth("gpu001", known, tt.h, p) {
				if f.Check != HealthID || f.Subject.Node != "gpu001" {
					t.Errorf("%+v", f)
				}
				got = append(got, line(f))
			}
			if text := strings.Join(got, "\n"); text != tt.want {
				t.Errorf("got\n%s\nwant\n%s", text, tt.want)
			}
		})
	}
}
