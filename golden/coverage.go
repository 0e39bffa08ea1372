package golden

import (
	"slices"
	"strconv"
)

// Partitions of an SM, each with its own pipes: warp w is in partition w mod 4.
const Partitions = 4

// A Matrix is what a run has verified: kernels by SMs and partitions.
type Matrix struct {
	Rows     []Row
	Copies   []CopyRow // tests of copies, one cell each
	Cells    int       // kernels that apply × SMs × partitions, and tests of copies that apply
	Verified int
}

// A CopyRow is one test of copies: its cell is "1" when verified, else as a Row's.
type CopyRow struct {
	Kernel string
	Peer   string // UUID; empty for a test of one GPU
	Cell   string
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
		if s.Copy != nil {
			m.cover(s)
			continue
		}
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

// cover adds a stage of copies. Of several with the same peer, a wrong one outweighs all.
func (m *Matrix) cover(s Stage) {
	i := slices.IndexFunc(m.Copies, func(c CopyRow) bool { return c.Kernel == s.Kernel && c.Peer == s.Copy.Peer })
	if i < 0 {
		i = len(m.Copies)
		m.Copies = append(m.Copies, CopyRow{s.Kernel, s.Copy.Peer, "-"})
		if s.Skip != "" {
			m.Copies[i].Cell = "."
			return
		}
		m.Cells++
	}
	c := &m.Copies[i]
	switch {
	case c.Cell == "x":
	case s.Copy.Wrong != nil:
		if c.Cell == "1" {
			m.Verified--
		}
		c.Cell = "x"
	case c.Cell == "-" && s.Gap(0) == "":
		c.Cell = "1"
		m.Verified++
	}
}

func markWrong(row Row, s Stage) {
	for _, sm := range s.SMs {
		if sm.Mismatch != nil && sm.SM >= 0 && sm.SM < len(row.SMs) {
			row.SMs[sm.SM] = "x"
		}
	}
}
