package ptxvm

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

const head = ".version 7.0\n.target sm_80\n.address_size 64\n"

// launch runs a body as a kernel of 64 threads on a buffer of 256 words, the first 128 of which are written.
func launch(t *testing.T, cfg Config, grid int, body string) (*Device, uint64, error) {
	t.Helper()
	m, err := Parse(head + ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<4>;\n" +
		".shared .align 4 .b8 s[256];\nld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;\n" +
		"shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;\n" + body + "\nret; }\n")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDevice(cfg)
	a := d.Alloc(1024)
	if err := d.Write(a, make([]byte, 512)); err != nil {
		t.Fatal(err)
	}
	return d, a, d.Launch(m.Entries["k"], grid, 64, 0, binary.LittleEndian.AppendUint64(nil, a))
}

func TestTheMachineIsStricterThanHardware(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		grid       int
		kind       string // "": runs to its end
	}{
		{"threads that keep to their own words", "st.global.u32 [%d3], %r1;", 1, ""},
		{"two blocks write the same words", "st.global.u32 [%d3], %r1;", 2, "race"},
		{"two blocks add to the same words atomically", "red.global.add.u32 [%d3], %r1;", 2, ""},
		{"an atomic and a plain store", "red.global.add.u32 [%d3], %r1; st.global.u32 [%d3], %r1;", 2, "race"},
		{"a neighbour's word after the barrier", "st.shared.u32 [%r3], %r1; bar.sync 0; xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d3], %r5;", 1, ""},
		{"a neighbour's word without it", "st.shared.u32 [%r3], %r1; xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d3], %r5;", 1, "race"},
		{"a warp barrier orders a warp", "st.shared.u32 [%r3], %r1; bar.warp.sync 0xffffffff; xor.b32 %r4, %r3, 4; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d3], %r5;", 1, ""},
		{"a warp barrier does not order two warps", "st.shared.u32 [%r3], 0; bar.sync 0; st.shared.u32 [%r3], %r1; bar.warp.sync 0xffffffff; xor.b32 %r4, %r3, 128; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d3], %r5;", 1, "race"},
		{"a register that nobody wrote is stored", "st.global.u32 [%d3], %r9;", 1, "uninitialised"},
		{"a register that nobody wrote is not used", "add.u32 %r8, %r9, 1; st.global.u32 [%d3], %r1;", 1, ""},
		{"arithmetic does not launder it", "add.u32 %r8, %r9, 1; xor.b32 %r8, %r8, %r8; st.global.u32 [%d3], %r8;", 1, "uninitialised"},
		{"shared bytes that nobody wrote", "ld.shared.u32 %r5, [%r3]; st.global.u32 [%d3], %r5;", 1, "uninitialised"},
		{"global bytes that nobody wrote", "ld.global.u32 %r5, [%d3+512]; st.global.u32 [%d3], %r5;", 1, "uninitialised"},
		{"a branch on what nobody computed", "@%p1 bra L; L:", 1, "uninitialised"},
		{"an address that nobody computed", "ld.global.u32 %r5, [%d7];", 1, "uninitialised"},
		{"beyond the buffer", "st.global.u32 [%d3+1024], %r1;", 1, "illegal_address"},
		{"beyond shared memory", "st.shared.u32 [%r3+256], %r1;", 1, "illegal_address"},
		{"an odd address", "st.global.u32 [%d3+2], %r1;", 1, "misaligned"},
		{"half a block at a barrier, the rest spinning", "setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; bra E; L: bra L; E:", 1, "timeout"},
		{"a barrier of lanes that part", "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; bar.warp.sync 0xffffffff; bra E; L: bar.sync 0; E:", 1, "deadlock"},
		{"a warp barrier that lanes reach by two ways", "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; add.u32 %r2, %r1, 1; L: bar.warp.sync 0xffffffff;", 1, ""},
		{"a shuffle in a lane that it does not name", "shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffff;", 1, "divergence"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(6) {
				_, _, err := launch(t, Config{SMs: 2, Seed: seed, Hostile: seed > 0, Races: true, Budget: 20000}, tt.grid, tt.body)
				var trap *Trap
				kind := ""
				if errors.As(err, &trap) {
					kind = trap.Kind
				} else if err != nil {
					t.Fatal(err)
				}
				if kind != tt.kind {
					t.Fatalf("seed %d: %q, want %q: %v", seed, kind, tt.kind, err)
				}
				if err != nil && (!strings.Contains(err.Error(), "k: "+kind) || kind != "deadlock" && trap.Line == 0) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// A block on another SM sees old data through its L1 until it fences: the machine is not sequentially consistent.
func TestL1DoesNotFollowOtherSMs(t *testing.T) {
	body := `mov.u32 %r4, %ctaid.x; setp.ne.u32 %p1, %r4, 0; @%p1 bra B;
W: ld.relaxed.gpu.global.u32 %r6, [%d1+8]; setp.eq.u32 %p2, %r6, 0; @%p2 bra W;
mov.u32 %r5, 7; st.global.u32 [%d1], %r5; membar.gl; st.relaxed.gpu.global.u32 [%d1+4], %r5; bra E;
B: ld.global.ca.u32 %r7, [%d1]; st.relaxed.gpu.global.u32 [%d1+8], 1;
X: ld.relaxed.gpu.global.u32 %r6, [%d1+4]; setp.eq.u32 %p2, %r6, 0; @%p2 bra X;
FENCE ld.global.ca.u32 %r7, [%d1]; st.global.u32 [%d1+64], %r7; E:`
	for fence, want := range map[string]uint32{"": 0, "membar.gl;": 7} {
		d, a, err := launch(t, Config{SMs: 2, Budget: 200000}, 2, strings.Replace(body, "FENCE", fence, 1))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4)
		if err := d.Read(a+64, b); err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(b); got != want {
			t.Errorf("with %q: read %d, want %d", fence, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + ".visible .entry k(.param .u64 p) { .reg .b32 %r<4>; mov.u32 %r1, %tid.x; ret; }")
	f.Add(head + ".entry k { .reg .pred %p; { .reg .b32 tmp; } @!%p bra L; L: bar.sync 0; }")
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 1<<12 || strings.Count(src, "<") > 4 {
			return
		}
		m, err := Parse(src)
		if (m == nil) == (err == nil) {
			t.Errorf("neither module nor error, or both")
		}
	})
}
