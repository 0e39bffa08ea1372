// Package corpus is a fuzzer for GPUs: it draws random PTX programs whose end state is defined and the same on every
// architecture, runs them on the PTX machine for their goldens, keeps those that show something new, and packs them for the
// worker, which runs them on every SM as it runs the golden kernels.
//
// A program has the arguments, the claim of an SM, the keyed loads and stores and the canary of package kernels. One step
// draws its operands from four words of the state, puts every result into accumulators and adds those to the other four
// words: a bijection of the state whatever the instructions give, so one wrong bit of one result never heals.
//
// The grammar: floating point with an explicit .rn, no .ftz and no .approx; operands bounded so that no infinity and no NaN
// arises; divisors that are not zero; conversions within range; collectives of the full warp right after bar.warp.sync; atomics
// on words that one thread owns, or commutative ones whose result is not used; every access ordered by a barrier.
//
// The same seed, generator and tools give the same bytes.
package corpus

// Version is the generator's: another one may draw other programs from the same seed.
const Version = "1"

// Words is the state of a thread: four words that are read and four that take the results.
const Words = 8

// A Shape is how a program is run. All programs of a corpus have one shape.
type Shape struct {
	Threads int `json:"threads"` // a block: 4 warps, so that each partition of an SM has one
	Steps   int `json:"steps"`
	Seeds   int `json:"seeds"` // goldens of seeds 0 to Seeds-1 are in the corpus
}

// Usual is the shape of every corpus that this generator makes.
var Usual = Shape{Threads: 128, Steps: 16, Seeds: 4}
