package golden

import "strconv"

// Partitions of an SM, each with its own pipes: warp w is in partition w mod 4.
const Partitions = 4

// A Matrix is what a run has verified: kernels by SMs and partitions.
type Matrix struct {
	Rows     []Row
	Cells    int // kernels that apply × SMs × partitions
	Verified int
}

// A Row is one kernel. A cell is the number of partitions verified, "x" after a wrong result, "-" when not tested, "." when
// the kernel does not apply.
type Row struct {
	Kernel string
	SMs    []string
}

// Cover gives the matrix of a result. Stages of one kernel with several seeds add up: one wrong result outweighs all.
func Cover(r Result) Matrix {
	var m Matrix
	index := map[string]int{}
	for _, s := range r.Stages {
		i, ok := index[s.Kernel]
		if !ok {
			i = len(m.Rows)
			index[s.Kernel] = i
			row := Row{s.Kernel, make([]string, r.GPU.SMs)}
			for c := range row.SMs {
				row.SMs[c] = "-"
				if s.Skip != "" {
					row.SMs[c] = "."
				}
			}
			m.Rows = append(m.Rows, row)
			if s.Skip == "" {
				m.Cells += r.GPU.SMs * Partitions
			}
		}
		if s.Err != "" || !s.Canary.Seen {
			// A stage that proves nothing verifies nothing, but its wrong results are still shown.
			markWrong(m.Rows[i], s)
			continue
		}
		for _, sm := range s.SMs {
			if sm.SM < 0 || sm.SM >= r.GPU.SMs || m.Rows[i].SMs[sm.SM] == "x" {
				continue
			}
			if sm.Mismatch == nil && sm.Verified > 0 {
				m.Rows[i].SMs[sm.SM] = strconv.Itoa(min(sm.Warps, Partitions))
			}
		}
		markWrong(m.Rows[i], s)
	}
	for _, row := range m.Rows {
		for _, c := range row.SMs {
			if n, err := strconv.Atoi(c); err == nil {
				m.Verified += n
			}
		}
	}
	return m
}

func markWrong(row Row, s Stage) {
	for _, sm := range s.SMs {
		if sm.Mismatch != nil && sm.SM >= 0 && sm.SM < len(row.SMs) {
			row.SMs[sm.SM] = "x"
		}
	}
}
