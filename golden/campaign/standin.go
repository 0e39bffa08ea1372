package campaign

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/assay-gpu/assay/golden/ptxvm"
)

// StandIns are what other tools do, by their published compare rules, on the same faults and for as much simulated time as
// the suite takes. They are at an advantage: they compare on the host, where the tools compare on the GPU under test.
//
//   - gpu-burn (wilicc/gpu-burn, compare.cu): products of the same two matrices, each compared with the first; an element
//     counts when fabsf(C[0] - C[i]) > 0.001, which no NaN does.
//   - dcgm-diagnostic (NVIDIA/DCGM, nvvs/plugin_src/diagnostic/compare.cu): the same in FP32, FP64 (more than 1e-7) and FP16,
//     and NaN counts.
//   - dcgm-memory (NVIDIA/DCGM, nvvs/plugin_src/memory/memory.cpp): one byte everywhere, read back: 0x00, 0xAA, 0x55, 0xFF,
//     0x00.
//   - nan-scan: a training loop that looks for NaN and infinities in what its layers give.
var StandIns = []string{"gpu-burn", "dcgm-diagnostic", "dcgm-memory", "nan-scan"}

// burnScale brings sums of 256 products to about 2e5, where those of gpu-burn lie: 8,192 products of numbers from 0 to 10.
const burnScale = 100

// standIns names the tools that see the fault; one that ends in an error is taken to see it.
func (r *Runner) standIns(f ptxvm.Fault) ([]string, error) {
	by := map[string]*workload{}
	for _, w := range r.jobs {
		by[w.name] = w
	}
	burn := *by["gemm_f32"]
	burn.reals = nil
	for i := 0; i < len(by["gemm_f32"].reals); i += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(by["gemm_f32"].reals[i:]))
		burn.reals = binary.LittleEndian.AppendUint32(burn.reals, math.Float32bits(v*burnScale))
	}
	var scan []*workload
	for _, name := range []string{"gemm_f32", "gemm_f16", "gemm_bf16", "gemm_s8", "attention"} { // all of whose results are FP32
		scan = append(scan, by[name])
	}
	var out []string
	for _, t := range []struct {
		name string
		runs []*workload
		bad  func(w int, first, now []byte) bool
	}{
		{"gpu-burn", []*workload{&burn}, func(_ int, first, now []byte) bool { return far32(first, now, false) }},
		{"dcgm-diagnostic", []*workload{&burn, by["gemm_f64"], by["gemm_f16"]}, func(w int, first, now []byte) bool {
			return w == 1 && far64(first, now) || w != 1 && far32(first, now, true)
		}},
		{"dcgm-memory", []*workload{r.memory}, func(_ int, _, now []byte) bool { return counted(now) }},
		{"nan-scan", scan, func(_ int, _, now []byte) bool { return notFinite(now) }},
	} {
		saw, err := r.standIn(f, t.runs, t.bad)
		if err != nil {
			return nil, err
		}
		if saw {
			out = append(out, t.name)
		}
	}
	return out, nil
}

func (r *Runner) standIn(f ptxvm.Fault, runs []*workload, bad func(w int, first, now []byte) bool) (bool, error) {
	d := r.device(f)
	first := make([][]byte, len(runs))
	for begun, n := d.Now(), 0; n < 2 || d.Now()-begun < r.takes; n++ {
		for i, w := range runs {
			now, err := w.run(d, r.o.SMs, workloadSteps)
			var trap *ptxvm.Trap
			if errors.As(err, &trap) {
				return true, nil
			}
			if err != nil {
				return false, err
			}
			if first[i] == nil {
				first[i] = now
			}
			if bad(i, first[i], now) {
				return true, nil
			}
		}
	}
	return false, nil
}

func far32(first, now []byte, nan bool) bool {
	for i := 0; i < len(now); i += 4 {
		a, b := math.Float32frombits(binary.LittleEndian.Uint32(first[i:])), math.Float32frombits(binary.LittleEndian.Uint32(now[i:]))
		if float32(math.Abs(float64(a-b))) > 0.001 || nan && b != b {
			return true
		}
	}
	return false
}

// far64 reads what gemm_f64 writes: all low halves of one sum, then all high ones.
func far64(first, now []byte) bool {
	const row = 4 * workloadThreads
	value := func(x []byte, i int) float64 {
		return math.Float64frombits(uint64(binary.LittleEndian.Uint32(x[i+row:]))<<32 | uint64(binary.LittleEndian.Uint32(x[i:])))
	}
	for block := 0; block < len(now); block += workloadWords * row {
		for r := 0; r < 4; r += 2 {
			for i := block + r*row; i < block+(r+1)*row; i += 4 {
				if a, b := value(first, i), value(now, i); math.Abs(a-b) > 0.0000001 || b != b {
					return true
				}
			}
		}
	}
	return false
}

// counted says whether a thread of dcgm_memory counted a byte.
func counted(now []byte) bool {
	for block := 0; block < len(now); block += 4 * workloadWords * workloadThreads {
		for i := range 4 * workloadThreads {
			if now[block+i] != 0 {
				return true
			}
		}
	}
	return false
}

func notFinite(now []byte) bool {
	for i := 0; i < len(now); i += 4 {
		if binary.LittleEndian.Uint32(now[i:])>>23&255 == 255 {
			return true
		}
	}
	return false
}

// A Versus is what a tool sees of the faults that count, beside the suite.
type Versus struct {
	Tool string `json:"tool"`
	Seen Part   `json:"seen"`
	Wins int    `json:"wins"` // faults that it sees and the suite misses
}

// Compare counts lines made with Options.Others. A fault counts when it corrupts a workload and ends in no error.
func Compare(lines []Line) []Versus {
	var suite, all int
	seen, wins := map[string]int{}, map[string]int{}
	for _, l := range lines {
		if l.Workload == "" || l.Outcome == DUE {
			continue
		}
		all++
		if l.Outcome == Detected {
			suite++
		}
		for _, t := range l.Others {
			seen[t]++
			if l.Outcome == Missed {
				wins[t]++
			}
		}
	}
	out := []Versus{{"this suite", part(suite, all), 0}}
	for _, t := range StandIns {
		out = append(out, Versus{t, part(seen[t], all), wins[t]})
	}
	return out
}
