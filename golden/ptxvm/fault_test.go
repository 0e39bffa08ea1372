package ptxvm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
)

func one(t testing.TB, line string) Fault {
	t.Helper()
	fs, err := ParseFaults([]byte(line))
	if err != nil || len(fs) != 1 {
		t.Fatalf("%d faults: %v", len(fs), err)
	}
	return fs[0]
}

// A fault is seen on its SM, at its lane of its partition first, and on no other SM.
func TestAFaultIsSeenWhereItSits(t *testing.T) {
	for _, tt := range []struct{ kernel, line string }{
		{"k01_imad", `{"v":1,"id":"a","class":"stuck","where":{"sm":1,"part":2,"unit":"imad","lane":5,"net":null},"when":{"p":1,"b":["0000000f","0000000b"]},"do":{"xor":"00000800"},"seed":1}`},
		{"k04_ffma", `{"v":1,"id":"b","class":"stuck","where":{"sm":1,"part":2,"unit":"fma32","lane":5},"when":{},"do":{"and":"fffffffe"},"seed":1}`},
		{"k18_mma_f16", `{"v":1,"id":"c","class":"stuck","where":{"sm":1,"part":2,"unit":"tensor16","lane":5},"when":{"p":1},"do":{"or":"00000100"},"seed":1}`},
		{"k04_ffma", `{"v":1,"id":"d","class":"trigger","where":{"sm":1,"part":2,"unit":"fma32","lane":5},"when":{"p":1,"a":["0000000f","00000003"],"prev_op":null},"do":{"xor":"00010000"},"seed":1}`},
		{"k01_imad", `{"v":1,"id":"e","class":"transition","where":{"sm":1,"part":2,"unit":"imad","lane":5},"when":{"p":1},"do":{"xor":"00000010"},"seed":1}`},
		{"k01_imad", `{"v":1,"id":"g","class":"bridge","where":{"sm":1,"part":2,"unit":"imad","lane":5},"when":{"p":1},"do":{"or":"00000041"},"seed":1}`},
		{"k01_imad", `{"v":1,"id":"h","class":"bridge","where":{"sm":1,"part":2,"unit":"imad","lane":5},"when":{"p":1},"do":{"and":"fffffffa"},"seed":1}`},
		{"k01_imad", `{"v":1,"id":"i","class":"swap","where":{"sm":1,"part":2,"unit":"imad","lane":5},"when":{"p":1},"do":{},"seed":1}`},
		{"k04_ffma", `{"v":1,"id":"j","class":"multi","where":{"sm":1,"part":2,"unit":"fma32","lane":5},"when":{"p":1},"do":{"replace":"other_sm"},"seed":1}`},
		{"k01_imad", `{"v":1,"id":"f","class":"drop","where":{"sm":1,"part":2,"unit":"lop3","lane":5},"when":{"p":1},"do":{},"seed":1}`},
	} {
		k, _ := kernels.Lookup(tt.kernel)
		f := one(t, tt.line)
		want := ref.Block(k.ID, 3, 128, 16)
		got, d, err := runKernel(t, Config{SMs: 3, Capability: 90, SharedSM: 16 << 10, Faults: []Fault{f}}, k, 3, 128, 16, noCanary)
		if err != nil {
			t.Fatal(err)
		}
		for s := range got {
			if n := differ(got[s], want); (n > 0) != (s == 1) {
				t.Errorf("fault %s: SM %d: %d words differ", f.ID, s, n)
			}
		}
		if k.ID != "k18_mma_f16" { // threads that do not talk: only the struck one is wrong
			for i := range want {
				if got[1][i] != want[i] && i%128 != 2*32+5 {
					t.Errorf("fault %s: thread %d is wrong", f.ID, i%128)
				}
			}
		}
		if d.Hits()[f.ID] == 0 {
			t.Errorf("fault %s never acted", f.ID)
		}
	}
}

// Nothing heals: one result bit of the unit, flipped once at a random lane and activation, always reaches the output.
func TestEveryFlipReachesTheOutput(t *testing.T) {
	points := 200
	if testing.Short() || slow {
		points = 20
	}
	for _, k := range kernels.All() {
		u := unitUnderTest(t, k)
		steps := few(t, k, 12)
		want := ref.Block(k.ID, 5, 32, steps)
		r := rng{uint64(len(k.ID))}
		struck := 0
		for range points {
			line := fmt.Sprintf(`{"v":1,"id":"x","class":"stuck","where":{"sm":0,"part":0,"unit":%q,"lane":%d},"when":{"p":1},"do":{"xor":"%08x"},"seed":0}`, u, r.intN(32), 1<<r.intN(32))
			f := one(t, line).Upset(k.Probe, uint64(1+r.intN(steps)))
			got, d, err := runKernel(t, Config{SMs: 1, Capability: 90, SharedSM: 16 << 10, Faults: []Fault{f}}, k, 5, 32, steps, noCanary)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if d.Hits()["x"] == 0 {
				continue // a bit that the result does not have
			}
			struck++
			if differ(got[0], want) == 0 {
				t.Errorf("%s: an upset healed: %s", k.ID, line)
			}
		}
		if struck < points*3/10 {
			t.Errorf("%s: only %d of %d upsets acted", k.ID, struck, points)
		}
	}
}

// An atomic that is done twice is seen, and only by what uses atomics.
func TestAnAtomicThatIsDoneTwiceIsSeen(t *testing.T) {
	f := one(t, `{"v":1,"id":"a","class":"dup","where":{"sm":1,"part":2,"unit":"atomic","lane":"all"},"when":{"p":1},"do":{},"seed":1}`)
	for id, seen := range map[string]bool{"k17_atomic": true, "k01_imad": false} {
		k, _ := kernels.Lookup(id)
		got, _, err := runKernel(t, Config{SMs: 3, Capability: 90, SharedSM: 16 << 10, Faults: []Fault{f}}, k, 3, 128, 16, noCanary)
		if err != nil {
			t.Fatal(err)
		}
		want := ref.Block(id, 3, 128, 16)
		for s := range got {
			if n := differ(got[s], want); (n > 0) != (seen && s == 1) {
				t.Errorf("%s: SM %d: %d words differ", id, s, n)
			}
		}
	}
}

func unitUnderTest(t *testing.T, k kernels.Kernel) string {
	t.Helper()
	for _, in := range parsed(t, k).insts {
		if in.full == k.Probe {
			return in.unit.String()
		}
	}
	t.Fatalf("%s has no %s", k.ID, k.Probe)
	return ""
}

func TestFaultFiles(t *testing.T) {
	const good = `{"v":1,"id":"a","class":"stuck","where":{"sm":1,"part":2,"unit":"imad","lane":"quad:1","net":null},"when":{"p":0.5},"do":{"or":"1"},"seed":1}`
	if f := one(t, good); f.Lanes() != 0xF0 || f.Unit() != imad || f.Do.Or != 1 || f.Do.And != 0xFFFFFFFF {
		t.Errorf("%+v", f)
	}
	for _, tt := range []struct{ name, from, to, say string }{
		{"another version", `"v":1`, `"v":2`, "want 1"},
		{"a field nobody knows", `"seed":1`, `"seed":1,"colour":"red"`, "colour"},
		{"a field nobody knows in where", `"part":2`, `"part":2,"tpc":1`, "tpc"},
		{"a field nobody knows in when", `"p":0.5`, `"p":0.5,"volt":1`, "volt"},
		{"a field nobody knows in do", `"or":"1"`, `"or":"1","nand":"1"`, "nand"},
		{"a class nobody knows", `"stuck"`, `"rust"`, "rust"},
		{"a unit nobody knows", `"imad"`, `"flux"`, "flux"},
		{"a partition too many", `"part":2`, `"part":4`, "0 to 3"},
		{"a lane too many", `"quad:1"`, `32`, "0 to 31"},
		{"a quad too many", `"quad:1"`, `"quad:8"`, "quad"},
		{"a probability above one", `0.5`, `1.5`, "0 to 1"},
		{"a mask that is no hex", `"or":"1"`, `"or":"xyz"`, "hex"},
		{"a mask of 33 bits", `"or":"1"`, `"or":"100000000"`, "32 bits"},
		{"a value outside its mask", `"p":0.5`, `"p":1,"a":["1","2"]`, "never matches"},
		{"no id", `"id":"a"`, `"id":""`, "id"},
		{"two values on a line", `"seed":1}`, `"seed":1} {}`, "more than one"},
		{"the same id again", `"seed":1}`, `"seed":1}` + "\n" + good, "twice"},
	} {
		bad := strings.Replace(good, tt.from, tt.to, 1)
		if bad == good {
			t.Fatalf("%s: nothing replaced", tt.name)
		}
		if _, err := ParseFaults([]byte(bad)); err == nil || !strings.Contains(err.Error(), tt.say) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	link := one(t, strings.Replace(good, "imad", "nvlink", 1))
	if d := NewDevice(Config{SMs: 2, Faults: []Fault{link}}); len(d.NotModelled) != 1 {
		t.Errorf("a fault of a link is taken for one that the machine can break: %v", d.NotModelled)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"a","class":"stuck","where":{"sm":1,"part":2,"unit":"imad","lane":"all"},"when":{"p":1},"do":{"replace":"lane:3"},"seed":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs, err := ParseFaults(b)
		if err == nil {
			NewDevice(Config{SMs: 1, Faults: fs})
		}
	})
}

// How fast the machine runs: lane instructions a second on one core.
func BenchmarkMachine(b *testing.B) {
	for _, k := range kernels.All() {
		b.Run(k.ID, func(b *testing.B) {
			var lanes, warps uint64
			for b.Loop() {
				_, d, err := runKernel(b, Config{SMs: 1, Capability: 90, SharedSM: 16 << 10}, k, 1, 128, 64, noCanary)
				if err != nil {
					b.Fatal(err)
				}
				w, l := d.Instructions()
				lanes, warps = lanes+l, warps+w
			}
			b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e6, "Mlane-inst/s")
			b.ReportMetric(float64(warps)/b.Elapsed().Seconds()/1e6, "Mwarp-inst/s")
		})
	}
}
