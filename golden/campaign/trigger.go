package campaign

import (
	"math"

	"github.com/assay-gpu/assay/golden/netlist"
)

// A TriggerLine says how many operand bits a fault of a unit may need before the suite shows it half of the time. A trigger
// is w bits, at random places in the low 32 bits of the first two operands, that have the values they had in an operation of
// a workload: so every one of them corrupts that workload. The suite shows it when one of its operations matches, since no
// wrong result heals.
type TriggerLine struct {
	Unit       string      `json:"unit"`
	Operations int         `json:"operations"` // of one lane, in the suite
	W50        float64     `json:"w50"`        // -1: less than half at every w
	Goal       float64     `json:"goal"`       // log2(operations) - 2
	Shares     [33]float64 `json:"shares"`     // shown, by w
	Each       int         `json:"each"`       // triggers drawn for each w
}

// Triggers draws so many triggers for each w from 0 to 32 and looks for them in the suite's operands. A unit that no
// workload or no kernel uses has no line.
func (t *Trace) Triggers(each int, seed uint64) []TriggerLine {
	r := rng(seed)
	var out []TriggerLine
	for _, m := range netlist.Models() {
		ports := len(m.Build().In)
		var suite, jobs [][2]uint32
		for _, id := range t.Kernels {
			suite = append(suite, firstTwo(t.suite[id][m.Name], ports)...)
		}
		for _, w := range t.loads {
			jobs = append(jobs, firstTwo(w[m.Name], ports)...)
		}
		if len(suite) == 0 || len(jobs) == 0 {
			continue
		}
		l := TriggerLine{Unit: m.Name, Operations: len(suite), Goal: math.Log2(float64(len(suite))) - 2, Each: each, W50: -1}
		for w := range l.Shares {
			shown := 0
			for range each {
				want := jobs[r.below(len(jobs))]
				var mask [2]uint32
				for n := 0; n < w; {
					b := r.below(64)
					if mask[b/32]>>(b%32)&1 == 0 {
						mask[b/32] |= 1 << (b % 32)
						n++
					}
				}
				for _, op := range suite {
					if (op[0]^want[0])&mask[0]|(op[1]^want[1])&mask[1] == 0 {
						shown++
						break
					}
				}
			}
			l.Shares[w] = float64(shown) / float64(each)
		}
		l.W50 = half(l.Shares[:])
		out = append(out, l)
	}
	return out
}

// half is where the shares last fall through one half, between two whole numbers by a straight line.
func half(shares []float64) float64 {
	for w := len(shares) - 1; w >= 0; w-- {
		if shares[w] < 0.5 {
			continue
		}
		if w == len(shares)-1 {
			return float64(w)
		}
		return float64(w) + (shares[w]-0.5)/(shares[w]-shares[w+1])
	}
	return -1
}

func firstTwo(s *Stream, ports int) [][2]uint32 {
	var out [][2]uint32
	for i := 0; i < len(s.Ops); i += ports {
		out = append(out, [2]uint32{uint32(s.Ops[i]), uint32(s.Ops[i+1])})
	}
	return out
}

// A rng is xorshift64* (Vigna, 2016).
type random struct{ s uint64 }

func rng(seed uint64) *random { return &random{seed*0x9E3779B97F4A7C15 | 1} }

func (r *random) below(n int) int {
	r.s ^= r.s >> 12
	r.s ^= r.s << 25
	r.s ^= r.s >> 27
	return int(r.s * 0x2545F4914F6CDD1D >> 33 % uint64(n))
}
