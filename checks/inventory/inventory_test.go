package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// gpus gives GPUs by the last digit of their UUID and address.
func gpus(ids string) []checks.GPU {
	var out []checks.GPU
	for i, c := range ids {
		out = append(out, checks.GPU{UUID: "GPU-" + string(c), Index: i, PCI: fmt.Sprintf("0000:0%c:00.0", c), Name: "NVIDIA H100"})
	}
	return out
}

func accepted(ids string) *checks.Inventory { return &checks.Inventory{GPUs: gpus(ids)} }

// in puts a GPU where another one stood.
func in(gs []checks.GPU, uuid string, pci string) []checks.GPU {
	return append(gs, checks.GPU{UUID: uuid, Index: len(gs), PCI: pci, Name: "NVIDIA H100"})
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name     string
		reading  Reading
		expected *checks.Inventory
		policy   policy.Inventory
		want     string // verdict action subject, hard ones with a !; more than one joined by ;
		reason   string
	}{
		{"all there", Reading{Count: 3, GPUs: gpus("123")}, accepted("123"), policy.Inventory{}, "pass none node", "3 GPUs, the ones accepted before"},
		{"counted in another order", Reading{Count: 3, GPUs: gpus("312")}, accepted("123"), policy.Inventory{}, "pass none node", ""},
		{"none accepted before", Reading{Count: 3, GPUs: gpus("123")}, nil, policy.Inventory{}, "pass none node", "none accepted before"},
		{"none accepted before, as many as policy wants", Reading{Count: 3, GPUs: gpus("123")}, nil, policy.Inventory{Count: 3}, "pass none node", ""},
		{"never read", Reading{Count: -1}, accepted("123"), policy.Inventory{}, "unknown none node", "did not say how many"},
		{"no GPU, and nothing says that there is one", Reading{}, nil, policy.Inventory{}, "unknown none node", "counts no GPU"},
		{"no GPU accepted, none there", Reading{}, accepted(""), policy.Inventory{}, "unknown none node", "counts no GPU"},

		{"one missing", Reading{Count: 2, GPUs: gpus("12")}, accepted("123"), policy.Inventory{}, "!fail reboot gpu/GPU-3", "GPU 2 at 0000:03:00.0 is missing: the driver counts 2 of 3"},
		{"two missing", Reading{Count: 1, GPUs: gpus("2")}, accepted("123"), policy.Inventory{}, "!fail reboot gpu/GPU-1; !fail reboot gpu/GPU-3", "1 of 3"},
		{"all missing", Reading{}, accepted("12"), policy.Inventory{}, "!fail reboot gpu/GPU-1; !fail reboot gpu/GPU-2", "0 of 2"},
		{"one less than policy wants, none known", Reading{Count: 2, GPUs: gpus("12")}, nil, policy.Inventory{Count: 3}, "!fail reboot node", "counts 2 GPUs of 3"},
		{"the only one policy wants", Reading{}, nil, policy.Inventory{Count: 1}, "!fail reboot node", "counts 0 GPUs of 1"},
		{"policy wants more than were accepted", Reading{Count: 3, GPUs: gpus("123")}, accepted("123"), policy.Inventory{Count: 4}, "!fail reboot node", "counts 3 GPUs of 4"},
		{"policy wants fewer than were accepted", Reading{Count: 2, GPUs: gpus("12")}, accepted("123"), policy.Inventory{Count: 2}, "fail fix_config gpu/GPU-3", "though the count is what policy wants"},
		{"one more than policy wants", Reading{Count: 3, GPUs: gpus("123")}, accepted("123"), policy.Inventory{Count: 2}, "fail fix_config node", "counts 3 GPUs, 1 more"},
		{"one more than were accepted", Reading{Count: 4, GPUs: gpus("1234")}, accepted("123"), policy.Inventory{}, "fail fix_config node", "4 GPUs, 1 more"},

		{"counted but not named", Reading{Count: 3, GPUs: gpus("12")}, accepted("123"), policy.Inventory{}, "unknown none gpu/GPU-3", "counted but could not be named"},
		{"counted but not named, none accepted before", Reading{Count: 3, GPUs: gpus("12")}, nil, policy.Inventory{}, "unknown none node", "1 of 3 GPUs could not be named"},
		{"one missing, one not named: which cannot be told", Reading{Count: 2, GPUs: gpus("1")}, accepted("123"), policy.Inventory{}, "!fail reboot gpu/GPU-2; !fail reboot gpu/GPU-3", ""},

		{"swapped in its place", Reading{Count: 3, GPUs: in(gpus("12"), "GPU-9", "0000:03:00.0")}, accepted("123"), policy.Inventory{}, "fail fix_config gpu/GPU-9", "GPU GPU-9 stands where GPU GPU-3 was accepted"},
		{"swapped, at another address", Reading{Count: 3, GPUs: in(gpus("12"), "GPU-9", "0000:0f:00.0")}, accepted("123"), policy.Inventory{}, "fail fix_config gpu/GPU-9", "GPU-3 was accepted"},
		{"one swapped, one missing: the address tells which", Reading{Count: 2, GPUs: in(gpus("1"), "GPU-9", "0000:03:00.0")}, accepted("132"), policy.Inventory{}, "fail fix_config gpu/GPU-9; !fail reboot gpu/GPU-2", ""},

		{"the product policy wants", Reading{Count: 1, GPUs: gpus("1")}, nil, policy.Inventory{Name: "NVIDIA H100"}, "pass none node", ""},
		{"another product", Reading{Count: 2, GPUs: gpus("12")}, nil, policy.Inventory{Name: "NVIDIA B200"}, "fail fix_config gpu/GPU-1; fail fix_config gpu/GPU-2", `product "NVIDIA H100", policy wants "NVIDIA B200"`},
		{"the driver policy wants", Reading{Count: 1, GPUs: gpus("1"), Driver: "550.1"}, nil, policy.Inventory{Driver: "550.1"}, "pass none node", ""},
		{"another driver", Reading{Count: 1, GPUs: gpus("1"), Driver: "550.2"}, nil, policy.Inventory{Driver: "550.1"}, "fail fix_config node", "driver 550.2, policy wants 550.1"},
		{"a driver that did not say its version", Reading{Count: 1, GPUs: gpus("1")}, nil, policy.Inventory{Driver: "550.1"}, "unknown none node", "did not say its version"},
		{"another driver than at enrolment is the certificate's matter", Reading{Count: 1, GPUs: gpus("1"), Driver: "550.2"}, &checks.Inventory{Driver: "550.1", GPUs: gpus("1")}, policy.Inventory{}, "pass none node", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			fs := Judge("gpu001", tt.reading, tt.expected, tt.policy)
			for _, f := range fs {
				s := fmt.Sprintf("%s %s %s", f.Verdict, f.Action, f.Subject.Key())
				if f.Hard {
					s = "!" + s
				}
				got = append(got, s)
				if f.Check != ID || f.Subject.Node != "gpu001" {
					t.Errorf("a finding of %s about node %q", f.Check, f.Subject.Node)
				}
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Fatalf("got %q, want %q", g, tt.want)
			}
			if !strings.Contains(fs[0].Reason, tt.reason) {
				t.Errorf("reason %q, want %q in it", fs[0].Reason, tt.reason)
			}
		})
	}
}

func TestEvidence(t *testing.T) {
	fs := Judge("n", Reading{Count: 2, GPUs: gpus("12"), Driver: "550.1"}, nil, policy.Inventory{})
	if want := "count=2 driver=550.1 uuids=GPU-1,GPU-2"; fs[0].Evidence != want {
		t.Errorf("got %q, want %q", fs[0].Evidence, want)
	}
}

func TestJudgeLeavesTheReadingAlone(t *testing.T) {
	now, before := in(gpus("12"), "GPU-9", "0000:03:00.0"), accepted("123")
	Judge("n", Reading{Count: 3, GPUs: now}, before, policy.Inventory{})
	if now[2].UUID != "GPU-9" || len(before.GPUs) != 3 || before.GPUs[2].UUID != "GPU-3" {
		t.Error("what was read or accepted has changed")
	}
}
