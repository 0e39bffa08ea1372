package topo

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxGPUs is the most GPUs one node may have: what a mask of them holds.
const MaxGPUs = 32

// A Shape says how the GPUs of one model of node hang together. Masks have bit i for the GPU of index i.
type Shape struct {
	Name   string   `json:"name"`
	GPUs   int      `json:"gpus"`
	Memory int      `json:"memory,omitempty"` // GiB of one GPU; 0: not known
	Shards int      `json:"shards,omitempty"` // time-slice parts that one GPU counts for; 0: it cannot be time-sliced
	MIG    uint32   `json:"mig,omitempty"`    // those in MIG mode: they are had in instances only
	NVLink []uint32 `json:"nvlink"`           // by GPU: those it reaches over NVLink, by a direct link or a switch in the node
	Near   []uint32 `json:"near"`             // by GPU: those under its PCIe root or in its NUMA node

	pick [][]uint8 // best choice by mask of free GPUs and number wanted; nil above 8 GPUs
}

// NewShape is the shape of a node with n GPUs, 0 to MaxGPUs: all joined by NVLink when nvlink says so, and near each other
// in halves, as the two sockets of a server have them. It panics outside that range.
func NewShape(name string, n int, nvlink bool) *Shape {
	if n < 0 || n > MaxGPUs {
		panic("topo: a node with " + strconv.Itoa(n) + " GPUs")
	}
	s := &Shape{Name: name, GPUs: n, NVLink: make([]uint32, n), Near: make([]uint32, n)}
	half := (n + 1) / 2
	for i := range n {
		if nvlink {
			s.NVLink[i] = s.All() &^ (1 << i)
		}
		low := uint32(1)<<half - 1
		if i < half {
			s.Near[i] = low &^ (1 << i)
		} else {
			s.Near[i] = s.All() &^ low &^ (1 << i)
		}
	}
	s.table()
	return s
}

// Pairs is the shape of a node whose GPUs are joined by NVLink in the groups given, as {0,2},{1,3}. A GPU in no group has
// no NVLink.
func Pairs(name string, n int, groups ...[]int) *Shape {
	s := NewShape(name, n, false)
	for _, g := range groups {
		for _, a := range g {
			for _, b := range g {
				if a != b {
					s.NVLink[a] |= 1 << b
				}
			}
		}
	}
	s.table()
	return s
}

// All is the mask of every GPU of the node.
func (s *Shape) All() uint32 { return uint32(uint64(1)<<s.GPUs - 1) }

// Joined reports whether every GPU of mask reaches every other over NVLink.
func (s *Shape) Joined(mask uint32) bool {
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if mask&^s.NVLink[i] != 1<<i {
			return false
		}
	}
	return true
}

// Equal reports whether both say the same.
func (s *Shape) Equal(o *Shape) bool {
	return s.Name == o.Name && s.GPUs == o.GPUs && s.Memory == o.Memory && s.Shards == o.Shards && s.MIG == o.MIG &&
		slices.Equal(s.NVLink, o.NVLink) && slices.Equal(s.Near, o.Near)
}

// Ready makes a shape usable that was not made by one of this package's functions, as one read from JSON, and reports
// whether it can be: a mask for each GPU, and no link to one that is not there.
func (s *Shape) Ready() bool {
	if s == nil || s.GPUs < 0 || s.GPUs > MaxGPUs || len(s.NVLink) != s.GPUs || len(s.Near) != s.GPUs || s.MIG&^s.All() != 0 {
		return false
	}
	for i := range s.GPUs {
		if (s.NVLink[i]|s.Near[i])&^(s.All()&^(1<<i)) != 0 {
			return false
		}
	}
	s.table()
	return true
}

// ParseMatrix reads what `nvidia-smi topo -m` prints. NV# is NVLink; PIX, PXB, PHB and NODE are near, SYS is not. Columns
// and rows of NICs are passed over, and so is the legend.
func ParseMatrix(name, text string) (*Shape, error) {
	var cols []int // for each column of the header: its GPU, or -1
	rows := map[int][]string{}
	n := 0
	for l := range strings.Lines(text) {
		f := strings.Split(strings.TrimRight(l, "\r\n"), "\t")
		switch {
		case cols == nil && len(f) > 1 && strings.TrimSpace(f[0]) == "" && strings.HasPrefix(strings.TrimSpace(f[1]), "GPU"):
			for _, c := range f[1:] {
				i, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(c), "GPU"))
				if err != nil || !strings.HasPrefix(strings.TrimSpace(c), "GPU") {
					i = -1
				}
				n = max(n, i+1)
				cols = append(cols, i)
			}
		case cols != nil && strings.HasPrefix(f[0], "GPU"):
			i, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(f[0], "GPU")))
			if err != nil || i < 0 || rows[i] != nil {
				return nil, fmt.Errorf("GPU matrix: row %q is not one GPU's", clip(f[0]))
			}
			rows[i] = f[1:]
		}
	}
	if n == 0 || n > MaxGPUs || len(rows) != n {
		return nil, fmt.Errorf("GPU matrix: %d rows of GPUs for %d columns; want as many, 1 to %d", len(rows), n, MaxGPUs)
	}
	s := NewShape(name, n, false)
	clear(s.Near)
	for i := range n {
		for c, j := range cols {
			if j < 0 || j == i {
				continue
			}
			word := ""
			if c < len(rows[i]) {
				word = strings.TrimSpace(rows[i][c])
			}
			links, isNV := strings.CutPrefix(word, "NV")
			switch {
			case isNV && links != "" && links != "0":
				s.NVLink[i] |= 1 << j
			case word == "PIX" || word == "PXB" || word == "PHB" || word == "NODE":
				s.Near[i] |= 1 << j
			case word == "SYS":
			default:
				return nil, fmt.Errorf("GPU matrix: between GPU%d and GPU%d stands %q", i, j, clip(word))
			}
		}
	}
	s.numa(cols, rows)
	s.table()
	return s, nil
}

// numa makes GPUs near that NVLink hides from the matrix: those with the same text under "NUMA Affinity", which is the
// second column after the devices.
func (s *Shape) numa(cols []int, rows map[int][]string) {
	devices := 0
	for c := range cols {
		if len(rows[0]) > c {
			switch w := strings.TrimSpace(rows[0][c]); {
			case w == "X", strings.HasPrefix(w, "NV"), w == "PIX", w == "PXB", w == "PHB", w == "NODE", w == "SYS":
				devices = c + 1
			}
		}
	}
	at := func(i int) string {
		if len(rows[i]) > devices+1 {
			return strings.TrimSpace(rows[i][devices+1])
		}
		return ""
	}
	for i := range s.GPUs {
		for j := range s.GPUs {
			if a := at(i); i != j && a != "" && a == at(j) {
				s.Near[i] |= 1 << j
			}
		}
	}
}
