package campaign

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/golden/ptxvm"
)

// Strata are the kinds of fault that Draw draws in equal numbers: those that the machine models, by class.
var Strata = []string{"stuck", "transition", "trigger", "intermittent"}

// units that are drawn: pipes and memories of an SM.
var drawn = []string{"imad", "alu", "lop3", "shift", "fma32", "fma64", "fma16", "tensor16", "tensor_int8", "cvt", "lsu_data", "smem", "regfile", "atomic", "shuffle", "predicate", "branch"}

// Draw gives n faults as lines of a fault file, stratified over class and unit. The same seed gives the same faults.
func Draw(seed uint64, n int) ([]ptxvm.Fault, error) {
	s := seed*0x9E3779B97F4A7C15 + 1
	next := func(below int) int { // xorshift64 (Marsaglia, 2003)
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		return int(s >> 33 % uint64(below))
	}
	var b strings.Builder
	for i := range n {
		stratum := Strata[i%len(Strata)]
		bit := uint32(1) << next(32)
		do := map[string]string{"or": hex(bit)}
		if next(2) == 1 {
			do = map[string]string{"and": hex(^bit)}
		}
		when := map[string]any{"p": 1}
		class := stratum
		switch stratum {
		case "transition":
			do = map[string]string{"xor": hex(bit)}
		case "trigger":
			// w bits of an operand must have one value.
			w := 1 + next(8)
			mask := uint32(1<<w-1) << next(33-w)
			when["a"] = []string{hex(mask), hex(uint32(s>>32) & mask)}
			do = map[string]string{"xor": hex(bit)}
		case "intermittent":
			class = "stuck"
			when["p"] = []float64{0.1, 0.01, 0.001}[next(3)]
			do = map[string]string{"xor": hex(bit)}
		}
		line, err := json.Marshal(map[string]any{
			"v": 1, "id": fmt.Sprintf("%s-%d-%d", stratum, seed, i), "class": class, "seed": next(1 << 30), "when": when, "do": do,
			"where": map[string]any{"sm": next(4), "part": next(4), "unit": drawn[i/len(Strata)%len(drawn)], "lane": next(32)},
		})
		if err != nil {
			return nil, err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return ptxvm.ParseFaults([]byte(b.String()))
}

func hex(v uint32) string { return fmt.Sprintf("%08x", v) }

// Stratum is the kind of a drawn fault, or the class of any other.
func Stratum(l Line) string {
	for _, s := range Strata {
		if strings.HasPrefix(l.ID, s+"-") {
			return s
		}
	}
	return l.Class
}
