package corpus

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// Schedules is how many hostile schedules must end in the same state, the machine's plain order aside.
const Schedules = 20

// Flips is how many single-bit upsets of results are tried on a program; ReachPercent of them must reach the end.
const (
	Flips        = 200
	ReachPercent = 99
)

// Why a candidate was not admitted.
const (
	badGrammar   = "grammar"     // its text is not of the grammar
	badTrap      = "trap"        // the machine stopped it: a race, an uninitialised value, a deadlock
	badFloat     = "nan"         // an infinity or a NaN arose
	badSchedules = "schedule"    // its end state depends on the schedule or the architecture
	badFlips     = "masked"      // too many upsets never reach the end
	badOpcodes   = "opcodes"     // an assembler makes other instructions of it
	notNew       = "nothing new" // it adds no pair
)

// A refusal is why a candidate is not admitted.
type refusal struct {
	why    string
	detail string
}

func (r *refusal) Error() string { return r.why + ": " + r.detail }

func refuse(why, format string, args ...any) error {
	return &refusal{why, fmt.Sprintf(format, args...)}
}

// parse reads one program as a module of its own.
func (c code) parse() (*ptxvm.Entry, error) {
	m, err := ptxvm.Parse(head(c.tier) + c.text)
	if err != nil {
		return nil, refuse(badGrammar, "%s: %v", c.id, err)
	}
	return m.Entries[c.id], nil
}

// step gives the lines of the step in a module that holds only this program.
func (c code) step() []line {
	before, _, _ := strings.Cut(head(c.tier)+c.text, "\t"+stepBegins+"\n")
	return lines(c.body, strings.Count(before, "\n")+2)
}

// look runs a program once and checks what can be checked cheaply: its grammar, that the machine lets it end, and that every
// floating result is finite.
func (c code) look(s Shape) error {
	if err := lint(c.body, c.tier); err != nil {
		return refuse(badGrammar, "%s: %v", c.id, err)
	}
	e, err := c.parse()
	if err != nil {
		return err
	}
	floats := map[int]string{}
	for _, l := range c.step() {
		if f := l.float(); f != "" {
			floats[l.at] = f
		}
	}
	wild := 0
	tap := func(r ptxvm.Result) uint64 {
		if f := floats[r.Line]; f != "" && !finite(f, r.Value) {
			wild = r.Line
		}
		return r.Value
	}
	for seed := range s.Seeds {
		if _, err := run(ptxvm.Config{SMs: 1, Capability: 90, Tap: tap}, e, uint64(seed), s.Threads, s.Steps, noCanary); err != nil {
			return refuse(badTrap, "%s: %v", c.id, err)
		}
	}
	if wild > 0 {
		return refuse(badFloat, "%s: line %d gives an infinity or a NaN", c.id, wild)
	}
	return nil
}

// finite says whether bits of a format are a number.
func finite(format string, v uint64) bool {
	switch format {
	case "f64":
		f := math.Float64frombits(v)
		return !math.IsNaN(f) && !math.IsInf(f, 0)
	case "f16":
		return v>>10&31 != 31
	case "f16x2":
		return v>>10&31 != 31 && v>>26&31 != 31
	case "bf16x2":
		return v>>7&255 != 255 && v>>23&255 != 255
	}
	return uint32(v)>>23&255 != 255
}

// goldens runs a program for every seed: once as it comes and, for the first, under so many hostile schedules on several SMs
// and both ends of the architectures that it runs on; under four of them for the others. All must end alike.
func (c code) goldens(s Shape, schedules int) ([]golden.Digest, error) {
	e, err := c.parse()
	if err != nil {
		return nil, err
	}
	var out []golden.Digest
	for seed := range s.Seeds {
		want, err := plainRun(e, 90, uint64(seed), s.Threads, s.Steps)
		if err != nil {
			return nil, refuse(badTrap, "%s: %v", c.id, err)
		}
		n := schedules
		if seed > 0 {
			n = min(schedules, 4)
		}
		for i := range n {
			cfg := ptxvm.Config{SMs: 2, Capability: []int{90, c.tier}[i%2], Seed: uint64(seed*1000 + i), Hostile: true, Races: i%4 < 2, MoveSM: i%4 == 2}
			got, err := run(cfg, e, uint64(seed), s.Threads, s.Steps, noCanary)
			if err != nil {
				return nil, refuse(badTrap, "%s, schedule %d: %v", c.id, i, err)
			}
			for sm, w := range got {
				if w != nil && !slices.Equal(w, want) {
					return nil, refuse(badSchedules, "%s, schedule %d: SM %d ends in another state", c.id, i, sm)
				}
			}
		}
		out = append(out, golden.DigestOf(want))
	}
	return out, nil
}

// flips upsets single bits of single results, at random among the results that one warp writes in four steps, and counts those
// that change the end state, or end the launch.
func (c code) flips(r *rng, n int) (reached, struck int, err error) {
	const threads, steps = 32, 4
	e, err := c.parse()
	if err != nil {
		return 0, 0, err
	}
	want, err := plainRun(e, 90, 0, threads, steps)
	if err != nil {
		return 0, 0, refuse(badTrap, "%s: %v", c.id, err)
	}
	var at []line
	for _, l := range c.step() {
		if l.label == "" && l.writes() {
			at = append(at, l)
		}
	}
	for range n {
		l, thread, step := at[r.intN(len(at))], r.intN(threads), r.intN(steps)
		nth, bit, hit := r.intN(8), r.intN(64), false
		seen := 0
		tap := func(res ptxvm.Result) uint64 {
			if res.Line != l.at || res.Thread != thread {
				return res.Value
			}
			width, results := res.Width, l.results()
			if res.Nth != nth%results {
				return res.Value
			}
			if seen++; seen != step+1 {
				return res.Value
			}
			if l.predicate(res.Nth) {
				width = 1
			}
			hit = true
			return res.Value ^ 1<<(bit%max(width, 1))
		}
		got, err := run(ptxvm.Config{SMs: 1, Capability: 90, Tap: tap}, e, 0, threads, steps, noCanary)
		if !hit {
			continue // an instruction that this lane did not take
		}
		struck++
		if err != nil || got[0] == nil || !slices.Equal(got[0], want) {
			reached++
		}
	}
	return reached, struck, nil
}

// results is how many registers an instruction writes.
func (l line) results() int {
	if strings.HasPrefix(l.args[0], "{") {
		return strings.Count(l.args[0], ",") + 1
	}
	if l.stem() == "shfl" {
		return 2
	}
	return 1
}

// predicate says whether its nth result is one.
func (l line) predicate(nth int) bool {
	return l.stem() == "setp" || l.stem() == "shfl" && nth == 1 || l.stem() == "vote" && !l.has("ballot")
}

// reach refuses a program whose upsets fade.
func (c code) reach(r *rng) (float64, error) {
	reached, struck, err := c.flips(r, Flips)
	if err != nil {
		return 0, err
	}
	if struck < Flips/2 || reached*100 < struck*ReachPercent {
		return 0, refuse(badFlips, "%s: %d of %d upsets reach the end", c.id, reached, struck)
	}
	return float64(reached) / float64(struck), nil
}
