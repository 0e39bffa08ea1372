package sim

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-gpu/assay/agent/sim/nvmllib"
)

// counters is the size of one row of nvml.calls: nvmllib/src/state.h, SIM_FUNCTIONS.
const counters = 64

// Calls says how often each NVML function has been called on the node since Init or ResetCalls.
func Calls(dir string) map[string]int {
	total := map[string]int{}
	for _, row := range callRows(dir) {
		for name, n := range row {
			total[name] += n
		}
	}
	return total
}

// CallsOn says how often each NVML function has been called on GPU gpu; -1 stands for the calls that name no GPU.
func CallsOn(dir string, gpu int) map[string]int {
	if gpu < 0 {
		gpu = maxGPUs
	}
	if rows := callRows(dir); gpu < len(rows) {
		return rows[gpu]
	}
	return nil
}

// ResetCalls sets every counter to zero. Calls in flight may be counted or not.
func ResetCalls(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "nvml.calls"), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("simulated node: %w", err)
	}
	defer f.Close()
	_, err = f.WriteAt(make([]byte, callsSize), 0) // in place: the library has the file mapped
	return err
}

const callsSize = (maxGPUs + 1) * counters * 8

func callRows(dir string) []map[string]int {
	b, err := os.ReadFile(filepath.Join(dir, "nvml.calls"))
	if err != nil || len(b) < callsSize {
		return nil
	}
	rows := make([]map[string]int, maxGPUs+1)
	for i := range rows {
		rows[i] = map[string]int{}
		for j, name := range nvmllib.Functions {
			if n := binary.LittleEndian.Uint64(b[(i*counters+j)*8:]); n > 0 {
				rows[i][name] = int(n)
			}
		}
	}
	return rows
}
