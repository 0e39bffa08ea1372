package topo

import (
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseMatrix(t *testing.T) {
	text, err := os.ReadFile("testdata/gpus/h100-topo-m.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseMatrix("h100", string(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.GPUs != 8 || !s.Joined(0xff) {
		t.Errorf("%d GPUs, all joined %v; want 8 that NVSwitch joins", s.GPUs, s.Joined(0xff))
	}
	// GPU 6 reports other CPUs than the rest of its socket, and "0-1" for its NUMA nodes.
	for i, want := range []uint32{0b1110, 0b1101, 0b1011, 0b0111, 0b10100000, 0b10010000, 0, 0b00110000} {
		if s.Near[i] != want {
			t.Errorf("near GPU %d: %#b, want %#b", i, s.Near[i], want)
		}
	}
}

func TestParseMatrixForms(t *testing.T) {
	pairs := "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\tNV4\tNODE\t0-7\t0\nGPU1\tSYS\t X \tPHB\tNV4\t8-15\t1\nGPU2\tNV4\tPHB\t X \tSYS\t0-7\t0\nGPU3\tNODE\tNV4\tSYS\t X \t8-15\t1\n"
	s, err := ParseMatrix("pairs", pairs)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.NVLink, []uint32{0b100, 0b1000, 0b1, 0b10}) || !slices.Equal(s.Near, []uint32{0b1100, 0b1100, 0b0011, 0b0011}) {
		t.Errorf("NVLink %b, near %b", s.NVLink, s.Near)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "0 rows"},
		{"an error message", "NVIDIA-SMI has failed because it couldn't communicate", "0 rows"},
		{"a row missing", strings.Join(strings.SplitAfter(pairs, "\n")[:4], ""), "3 rows of GPUs for 4 columns"},
		{"a row twice", pairs + "GPU1\tSYS\n", "is not one GPU's"},
		{"a word nobody knows", strings.Replace(pairs, "PHB", "QPI", 1), `between GPU1 and GPU2 stands "QPI"`},
		{"a row cut short", strings.Replace(pairs, "GPU3\tNODE\tNV4\tSYS\t X \t8-15\t1", "GPU3\tNODE", 1), "between GPU3 and GPU1 stands"},
	} {
		if _, err := ParseMatrix("x", tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestPick(t *testing.T) {
	pairs := Pairs("pairs", 8, []int{0, 2}, []int{1, 3}, []int{4, 5}, []int{6, 7})
	nvswitch := NewShape("h100", 8, true)
	plain := NewShape("pcie", 8, false)
	for _, tt := range []struct {
		name  string
		shape *Shape
		free  uint32
		k     int
		want  uint32
	}{
		{"two GPUs are a pair", pairs, 0xff, 2, 0b101},
		{"the second two are the next pair, not 1 and 4", pairs, 0b11111010, 2, 0b1010},
		{"one GPU leaves pairs whole", pairs, 0b11111110, 1, 0b100},
		{"the leftover goes first, whatever its index", pairs, 0b01001111, 1, 0b1000000},
		{"four GPUs are two pairs in one socket", pairs, 0xff, 4, 0b1111},
		{"three GPUs: a pair, and the leftover of another", pairs, 0b11110111, 3, 0b00000111},
		{"behind a switch the sockets are kept whole", nvswitch, 0b11110111, 1, 0b1},
		{"behind a switch four GPUs share a socket", nvswitch, 0b11110111, 4, 0b11110000},
		{"without NVLink, near ones", plain, 0b11101110, 3, 0b1110},
		{"all there are", plain, 0b1010, 2, 0b1010},
		{"too few", plain, 0b1010, 3, 0},
		{"none wanted", plain, 0xff, 0, 0},
		{"GPUs that are not there do not count", NewShape("x", 2, false), 0xff, 3, 0},
	} {
		if got := tt.shape.Pick(tt.free, tt.k); got != tt.want {
			t.Errorf("%s: %d of %#b: %#b, want %#b", tt.name, tt.k, tt.free, got, tt.want)
		}
	}
}

// The table of small nodes and the search of large ones choose alike; what grows instead is whole, free and linked as well
// as could be but for one pair.
func TestSearchFindsWhatTheTableHas(t *testing.T) {
	for _, s := range []*Shape{Pairs("pairs", 8, []int{0, 2}, []int{1, 3}, []int{4, 5}, []int{6, 7}), NewShape("h100", 8, true), NewShape("pcie", 8, false), Pairs("quads", 8, []int{0, 1, 2, 3}, []int{4, 5, 6, 7})} {
		for free := uint32(1); free < 256; free++ {
			for k := 1; k < bits.OnesCount32(free); k++ {
				want := s.Pick(free, k)
				if got := s.search(free, k); got != want {
					t.Fatalf("%s: %d of %#b: %#b %v, best %#b %v", s.Name, k, free, got, s.score(got, free), want, s.score(want, free))
				}
				if got := s.grow(free, k); bits.OnesCount32(got) != k || got&^free != 0 || s.score(got, free)[0] < s.score(want, free)[0]-1 {
					t.Fatalf("%s: %d of %#b grew to %#b %v, best %#b %v", s.Name, k, free, got, s.score(got, free), want, s.score(want, free))
				}
			}
		}
	}
	wide := NewShape("wide", 32, true)
	if got := wide.Pick(wide.All(), 16); bits.OnesCount32(got) != 16 {
		t.Errorf("half of 32: %#x", got)
	}
	big := NewShape("dgx2", 16, true)
	if got := big.Pick(0xffff, 8); got != 0x00ff {
		t.Errorf("half of sixteen: %#x, want one socket", got)
	}
}

func TestGroups(t *testing.T) {
	pairs := Pairs("pairs", 4, []int{0, 2}, []int{1, 3})
	if got := pairs.PickGroups(0b1111, 4, 2); got != 0b1111 {
		t.Errorf("two pairs: %#b", got)
	}
	if got := pairs.PickGroups(0b0111, 2, 2); got != 0b0101 {
		t.Errorf("one pair: %#b", got)
	}
	if got := pairs.PickGroups(0b0011, 2, 2); got != 0 {
		t.Errorf("no pair is free: %#b", got)
	}
	if pairs.Groups(0b0011, 2) || !pairs.Groups(0b0101, 2) || !pairs.Groups(0b0011, 1) {
		t.Error("groups of two")
	}
	if got := pairs.Order(0b1111, 2); !slices.Equal(got, []int{0, 2, 1, 3}) {
		t.Errorf("rank order %v, want pairs side by side", got)
	}
	if got := pairs.Order(0b1111, 1); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("rank order %v without groups", got)
	}
	// A quad with a pair beside it: a group of two comes from the pair, and the quad stays whole.
	mixed := Pairs("mixed", 6, []int{0, 1, 2, 3}, []int{4, 5})
	if got := mixed.PickGroups(0b111111, 2, 2); got != 0b110000 {
		t.Errorf("a group of two: %#b, want the pair", got)
	}
}

func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape *Shape
		want  bool
	}{
		{"nothing", nil, false},
		{"made here", &Shape{Name: "x", GPUs: 2, NVLink: []uint32{2, 1}, Near: []uint32{0, 0}}, true},
		{"a mask missing", &Shape{GPUs: 2, NVLink: []uint32{2}, Near: []uint32{0, 0}}, false},
		{"a link to itself", &Shape{GPUs: 1, NVLink: []uint32{1}, Near: []uint32{0}}, false},
		{"a link to a GPU that is not there", &Shape{GPUs: 1, NVLink: []uint32{0}, Near: []uint32{4}}, false},
		{"too many GPUs", &Shape{GPUs: 33, NVLink: make([]uint32, 33), Near: make([]uint32, 33)}, false},
		{"a GPU in MIG mode that is not there", &Shape{GPUs: 1, MIG: 2, NVLink: []uint32{0}, Near: []uint32{0}}, false},
	} {
		if got := tt.shape.Ready(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzParseMatrix(f *testing.F) {
	text, err := os.ReadFile("testdata/gpus/h100-topo-m.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("\tGPU0\nGPU0\t X \n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseMatrix("x", text)
		if err != nil {
			return
		}
		if !s.Ready() {
			t.Fatalf("%+v is not sound", s)
		}
		for k := range s.GPUs + 1 {
			if got := s.Pick(s.All(), k); bits.OnesCount32(got) != k {
				t.Fatalf("%d GPUs of %d: %#b", k, s.GPUs, got)
			}
		}
	})
}
