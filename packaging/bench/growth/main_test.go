package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkGrowth/nodes=1000/gang=8-2    	  10000	  9000 ns/op	  1000 cpu-ns/op	 1 B/op
BenchmarkGrowth/nodes=10000/gang=8-2   	  10000	 90000 ns/op	 10000 cpu-ns/op	 1 B/op
BenchmarkGrowth/nodes=100000/gang=8-2  	  10000	 90000 ns/op	1000000 cpu-ns/op	 1 B/op
BenchmarkGrowth/nodes=1000/pending=100/event-2  	  10	 5 ns/op	 2500000 cpu-ns/op
BenchmarkGrowth/nodes=1000/pending=1000/event-2 	  10	 5 ns/op	 2500000 cpu-ns/op
PASS
`

func TestFiguresBecomeTableAndCharts(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	if err := draw(strings.NewReader(output), &b, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| nodes | 1000 | 10000 | 100000 | grows by the power | last step |",
		"| gang of 8 | 1.0 µs | 10 µs | 1.0 ms | 1.50 | 2.00 |",
		"| event, 1000 nodes | 2.5 ms | 2.5 ms | 0.00 | 0.00 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	for file, marks := range map[string]int{"growth-nodes.svg": 3, "growth-queue.svg": 2} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "<circle"); n != marks {
			t.Errorf("%s has %d marks, want %d", file, n, marks)
		}
	}
	if err := draw(strings.NewReader("PASS\n"), &b, ""); err == nil {
		t.Error("nothing to draw, and no error")
	}
}
