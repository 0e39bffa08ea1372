package port

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/strike"
)

// looks draws some looks at the same few ports.
func looks(t *rapid.T, ports int) [][]Port {
	var out [][]Port
	raw := make([]uint64, ports)
	for range rapid.IntRange(1, 20).Draw(t, "looks") {
		var now []Port
		for i := range ports {
			raw[i] = min(255, raw[i]+rapid.Uint64Range(0, 3).Draw(t, "lost"))
			x := Port{Name: fmt.Sprintf("mlx5_%d/1", i), PCI: fmt.Sprintf("0000:0%d:00.0", i), Counters: map[string]uint64{"link_downed": raw[i]}}
			x.Up, x.Disabled = rapid.Bool().Draw(t, "up"), rapid.Bool().Draw(t, "disabled")
			x.Rate = rapid.SampledFrom([]int{0, 200, 400}).Draw(t, "rate")
			now = append(now, x)
		}
		out = append(out, now)
	}
	return out
}

// judgeAll gives the findings of each look, by port.
func judgeAll(all [][]Port, name func(string) string) []map[string]checks.Finding {
	book, learned := strike.NewBook("b"), map[string]Learned{}
	var out []map[string]checks.Finding
	for i, ports := range all {
		var now []Port
		for _, x := range ports {
			x.Name = name(x.Name)
			now = append(now, x)
		}
		r := Track(book, learned, Infiniband, time.Duration(i)*2*time.Minute, Reading{Have: checks.Read, Ports: now}, limits())
		found := map[string]checks.Finding{}
		for _, f := range Judge(Infiniband, r, limits()) {
			found[f.Subject.Port] = f
		}
		out = append(out, found)
	}
	return out
}

func same(s string) string { return s }

// A port that was never up does not apply, whatever else it shows.
func TestAPortThatWasNeverUpIsNoFault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := looks(t, 2)
		for i := range all {
			all[i][1].Up = false
		}
		for _, found := range judgeAll(all, same) {
			if f := found["mlx5_1/1"]; f.Verdict != checks.NotApplicable {
				t.Fatalf("%+v", f)
			}
		}
	})
}

// What is said of a port does not depend on what its neighbours do, nor on its name.
func TestAPortIsJudgedByItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := looks(t, 3)
		var alone [][]Port
		for _, ports := range all {
			alone = append(alone, ports[1:2])
		}
		together, apart, renamed := judgeAll(all, same), judgeAll(alone, same), judgeAll(all, func(s string) string { return "x" + s })
		for i := range all {
			a, b, c := together[i]["mlx5_1/1"], apart[i]["mlx5_1/1"], renamed[i]["xmlx5_1/1"]
			c.Subject = a.Subject
			if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(a, c) {
				t.Fatalf("look %d\ntogether %+v\nalone    %+v\nrenamed  %+v", i, a, b, c)
			}
		}
	})
}

// Looking twice at one moment changes nothing.
func TestLookingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, learned := strike.NewBook("b"), map[string]Learned{}
		for i, ports := range looks(t, 2) {
			at := time.Duration(i) * time.Minute
			once := Track(book, learned, Infiniband, at, Reading{Have: checks.Read, Ports: ports}, limits())
			twice := Track(book, learned, Infiniband, at, Reading{Have: checks.Read, Ports: ports}, limits())
			if !reflect.DeepEqual(once, twice) {
				t.Fatalf("look %d:\n%+v\n%+v", i, once, twice)
			}
		}
	})
}
