package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) { importrules.Pure(t) }

// wellFormed fails unless text is one XML element, and returns the attributes of those called name.
func wellFormed(t *testing.T, text, name string) (found []map[string]string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == name {
			m := map[string]string{}
			for _, a := range e.Attr {
				m[a.Name.Local] = a.Value
			}
			found = append(found, m)
		}
	}
}

func label(f float64) string { return fmt.Sprint(f) }

func TestABarIsAsTallAsItsValue(t *testing.T) {
	bars := wellFormed(t, Bars("<a & b>", []string{"x", "y"}, []Series{{Name: "<one>", Y: []float64{10, 5}}}, label), "rect")
	if len(bars) != 3 { // the last is the legend's
		t.Fatalf("%d rectangles: %v", len(bars), bars)
	}
	var tall, half float64
	if _, err := fmt.Sscan(bars[0]["height"], &tall); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(bars[1]["height"], &half); err != nil {
		t.Fatal(err)
	}
	if tall < 100 || half != tall/2 {
		t.Errorf("heights %v and %v for 10 and 5", tall, half)
	}
}

func TestAPowerIsAStraightLineInLogarithms(t *testing.T) {
	figure := LogLog("growth", []Series{{Name: "linear", X: []float64{10, 100, 1000}, Y: []float64{2, 20, 200}}}, label, label)
	points := wellFormed(t, figure, "circle")
	if len(points) != 3 {
		t.Fatal(points)
	}
	var x, y [3]float64
	for i, p := range points {
		if _, err := fmt.Sscan(p["cx"], &x[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(p["cy"], &y[i]); err != nil {
			t.Fatal(err)
		}
	}
	near := func(a, b float64) bool { return a-b < 0.2 && b-a < 0.2 }
	if !near(x[1]-x[0], x[2]-x[1]) || !near(y[0]-y[1], y[1]-y[2]) || y[0] <= y[1] {
		t.Errorf("marks at %v, %v", x, y)
	}
}

func TestAFileStandsByItself(t *testing.T) {
	var b strings.Builder
	if err := WriteFile(&b, Lines("GPUs", "0", "1d", []Series{{Name: "used", X: []float64{0, 1}, Y: []float64{0, 3}}}, label)); err != nil {
		t.Fatal(err)
	}
	if svg := wellFormed(t, b.String(), "svg"); len(svg) != 1 || svg[0]["viewBox"] == "" {
		t.Errorf("%v in %s", svg, b.String())
	}
	if !strings.HasPrefix(b.String(), `<svg xmlns="http://www.w3.org/2000/svg" `) || !strings.Contains(b.String(), "<polyline") {
		t.Error(b.String())
	}
}
