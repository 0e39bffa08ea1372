package hostlist

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) { importrules.Pure(t) }

// TestSamples runs the table of forms seen in public reports; the last column of each row says where.
func TestSamples(t *testing.T) {
	data, err := os.ReadFile("testdata/hostlists.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 4 {
			t.Fatalf("row has %d columns: %q", len(f), line)
		}
		rows++
		t.Run(f[0], func(t *testing.T) {
			got, err := Expand(f[0])
			if f[2] == "ERROR" || strings.Contains(f[3], "assay must reject") {
				if err == nil {
					t.Fatalf("Expand(%q) = %q, want an error: %s", f[0], got, f[3])
				}
				var he *Error
				if !errors.As(err, &he) || he.Hint() == "" || he.Status() != 400 {
					t.Errorf("error %v is not a usable *Error", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, first := 0, []string(nil)
			if f[2] != "EMPTY" {
				want, _ = strconv.Atoi(f[1])
				first = strings.Fields(f[2])
			}
			if len(got) != want {
				t.Errorf("%d names, want %d", len(got), want)
			}
			if !slices.Equal(got[:min(8, len(got))], first) {
				t.Errorf("starts %q, want %q", got[:min(8, len(got))], first)
			}
		})
	}
	if rows != 29 {
		t.Errorf("%d rows read, want 29", rows)
	}
}

func TestCompress(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"one name stays plain", "gpu001", "gpu001"},
		{"a run", "gpu003 gpu001 gpu002", "gpu[001-003]"},
		{"two in a row are a range, as Slurm writes it", "n1 n2", "n[1-2]"},
		{"a gap", "gpu1 gpu2 gpu4", "gpu[1-2,4]"},
		{"nine to ten without zeros", "n9 n10", "n[9-10]"},
		{"ninety nine to a hundred", "c098 c099 c100 c99 c0100", "c[098,99,099-100,0100]"},
		{"widths do not mix", "c01 c02 c003", "c[01-02,003]"},
		{"prefixes apart", "b1 a1 a2", "a[1-2],b1"},
		{"no number", "login gpu1", "gpu1,login"},
		{"only the last number is grouped", "r1n1 r1n2 r2n1", "r1n[1-2],r2n1"},
		{"a suffix is not grouped", "n1-ib n2-ib", "n1-ib,n2-ib"},
		{"duplicates stay", "n1 n1 n2", "n[1,1-2]"},
		{"the same letters without a number first", "n1 n n2", "n,n[1-2]"},
		{"a number too long for one integer", "n1234567890123456789 n1234567890123456790", "n1[234567890123456789-234567890123456790]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Compress(strings.Fields(tt.in)); got != tt.want {
				t.Errorf("Compress(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestCompressLeavesItsArgument(t *testing.T) {
	in := []string{"n2", "n1"}
	Compress(in)
	if in[0] != "n2" {
		t.Errorf("argument reordered: %q", in)
	}
}

func TestSortCountsAsPeopleDo(t *testing.T) {
	in := strings.Fields("gpu10 gpu2 gpu02 gpu1 cpu1 gpu")
	Sort(in)
	if got, want := strings.Join(in, " "), "cpu1 gpu gpu1 gpu2 gpu02 gpu10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     int // names; -1: an error
	}{
		{"the longest range", "n[1-65536]", 65536},
		{"one more", "n[0-65536]", -1},
		{"a whole fleet", "a[1-65536],b[1-65536],c[1-65536],d[1-65536]", MaxNames},
		{"more than a fleet", "a[1-65536],b[1-65536],c[1-65536],d[1-65536],e", -1},
		{"groups multiply up to one range", "r[1-256]n[1-256]", 65536},
		{"groups multiply past it", "r[1-256]n[1-257]", -1},
		{"many groups", strings.Repeat("[1]", 9), -1},
		{"eight groups", strings.Repeat("[1]", 8), 1},
		{"a number of 19 digits", "n[1000000000000000000]", -1},
		{"a quote", "n1'", -1},
		{"an option", "n1=down", -1},
		{"a NUL byte", "n\x001", -1},
		{"not ASCII", "nœud1", -1},
		{"a space inside brackets", "n[1, 2]", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Expand(tt.in)
			if (err != nil) != (tt.want < 0) {
				t.Fatalf("%d names, error %v; want %d", len(got), err, tt.want)
			}
			if err == nil && len(got) != tt.want {
				t.Errorf("%d names, want %d", len(got), tt.want)
			}
		})
	}
}

func TestErrorNamesThePlace(t *testing.T) {
	_, err := Expand("gpu[001-004],gpu[5-x]")
	var he *Error
	if !errors.As(err, &he) || he.Pos != 17 || !strings.Contains(he.Msg, `"5-x"`) {
		t.Errorf("got %+v", err)
	}
}

// FuzzExpand checks that what is read can be written and read again, sorted and nothing lost, and that writing is stable.
func FuzzExpand(f *testing.F) {
	data, err := os.ReadFile("testdata/hostlists.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		expr, _, _ := strings.Cut(line, "\t")
		f.Add(expr)
	}
	f.Add("n1234567890123456789,n09,n9,n[8-10]")
	f.Fuzz(func(t *testing.T, s string) {
		names, err := Expand(s)
		if err != nil {
			return
		}
		short := Compress(names)
		again, err := Expand(short)
		if err != nil {
			t.Fatalf("Compress(%q) = %q, not readable: %v", s, short, err)
		}
		sorted := slices.Clone(names)
		Sort(sorted)
		if !slices.Equal(again, sorted) {
			t.Fatalf("%q: through %q came back %s, want %s", s, short, clip(again), clip(sorted))
		}
		if twice := Compress(again); twice != short {
			t.Fatalf("%q: %q, then %q", s, short, twice)
		}
	})
}

func clip(names []string) string {
	return fmt.Sprintf("%d names %q", len(names), names[:min(8, len(names))])
}

func BenchmarkCompress10000(b *testing.B) {
	names, err := Expand("gpu[00001-10000]")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Compress(names)
	}
}
