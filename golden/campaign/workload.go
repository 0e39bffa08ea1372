package campaign

import (
	"embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/ref"
)

//go:embed workloads/*.ptx
var workloadFiles embed.FS

// Workloads are ten pieces of what jobs run, on random data: a fault that corrupts none of them is one that nobody would
// miss, and does not count.
var Workloads = []string{"gemm_f32", "gemm_f16", "gemm_bf16", "gemm_f64", "gemm_s8", "attention", "norm", "optimiser", "reduction", "sort"}

const (
	workloadThreads = 128
	workloadWords   = 16 // a thread, of each input and of the output
	workloadSteps   = 8
)

// A workload is one of them, ready to run on devices of so many SMs.
type workload struct {
	name        string
	entry       *ptxvm.Entry
	reals, bits []byte
}

func loadWorkloads(sms int) ([]*workload, error) {
	return loadPrograms(Workloads, sms)
}

func loadPrograms(names []string, sms int) ([]*workload, error) {
	var out []*workload
	for i, name := range names {
		src, err := workloadFiles.ReadFile("workloads/" + name + ".ptx")
		if err != nil {
			return nil, err
		}
		m, err := ptxvm.Parse(string(src))
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", name, err)
		}
		n := sms * workloadThreads * workloadWords
		w := &workload{name: name, entry: m.Entries[name]}
		var reals, bits []uint32
		for k := range n {
			// A normal distribution (Box, Muller, 1958).
			u := (float64(ref.Input(uint64(1000+i), 3*k)) + 1) / (1 << 32)
			v := float64(ref.Input(uint64(1000+i), 3*k+1)) / (1 << 32)
			reals = append(reals, math.Float32bits(float32(math.Sqrt(-2*math.Log(u))*math.Cos(2*math.Pi*v))))
			bits = append(bits, ref.Input(uint64(1000+i), 3*k+2))
		}
		w.reals, w.bits = bytesOf(reals), bytesOf(bits)
		out = append(out, w)
	}
	return out, nil
}

// run gives the workload's results on a device.
func (w *workload) run(d *ptxvm.Device, sms, steps int) ([]byte, error) {
	out := make([]byte, len(w.reals))
	var params []byte
	for _, b := range [][]byte{out, w.reals, w.bits} {
		a := d.Alloc(len(b))
		defer func() { _ = d.Free(a) }() // it was allocated just now
		if err := d.Write(a, b); err != nil {
			return nil, err
		}
		params = binary.LittleEndian.AppendUint64(params, a)
	}
	to := binary.LittleEndian.Uint64(params)
	params = binary.LittleEndian.AppendUint32(params, uint32(steps))
	if err := d.Launch(w.entry, sms, workloadThreads, 0, params); err != nil {
		return nil, err
	}
	return out, d.Read(to, out)
}
