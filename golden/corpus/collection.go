package corpus

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ptxvm"
)

// A Collection is programs for the worker to run: those that are kept for ever, and then a corpus's.
type Collection struct {
	shape   Shape
	list    []kernels.Kernel
	goldens map[string][]golden.Digest
	text    map[string]string // a module of its own for each
	version string
}

// Collect puts kept programs and a corpus together; c may be nil. Those that once caught a device come first, the others from
// the one on that day says, so that a run that is cut off does not leave the same ones out every time.
func Collect(c *Corpus, kept []Kept, day time.Time) (*Collection, error) {
	l := &Collection{shape: Usual, goldens: map[string][]golden.Digest{}, text: map[string]string{}}
	for _, k := range kept {
		if err := l.add(k.Program, k.Text); err != nil {
			return nil, err
		}
	}
	l.version = "kept"
	if c != nil {
		l.version = c.Digest[:12]
		if c.Manifest.Shape != Usual {
			return nil, fmt.Errorf("a corpus of %d threads, %d steps and %d seeds: this program runs %d, %d and %d", c.Manifest.Threads, c.Manifest.Steps, c.Manifest.Seeds, Usual.Threads, Usual.Steps, Usual.Seeds)
		}
		var caught, rest []Program
		for _, p := range c.Manifest.Programs {
			if len(p.Caught) > 0 {
				caught = append(caught, p)
			} else {
				rest = append(rest, p)
			}
		}
		if n := len(rest); n > 0 {
			from := seeded(uint64(dayNumber(day)), 0).intN(n)
			rest = slices.Concat(rest[from:], rest[:from])
		}
		for _, p := range slices.Concat(caught, rest) {
			if err := l.add(p, c.entries[p.ID]); err != nil {
				return nil, err
			}
		}
	}
	if len(l.list) == 0 {
		return nil, errors.New("no program: the corpus is empty, and none is kept")
	}
	return l, nil
}

func (l *Collection) add(p Program, text string) error {
	if _, have := l.goldens[p.ID]; have {
		return nil
	}
	var gs []golden.Digest
	for _, g := range p.Goldens {
		b, err := hex.DecodeString(g)
		if err != nil || len(b) != len(golden.Digest{}) {
			return fmt.Errorf("program %s: golden %q is no digest", p.ID, g)
		}
		gs = append(gs, golden.Digest(b))
	}
	l.goldens[p.ID], l.text[p.ID] = gs, head(p.Tier)+text
	l.list = append(l.list, kernels.Kernel{
		ID: p.ID, Rule: "corpus", Unit: "many units, one after the other", Target: fmt.Sprintf("sm_%d", p.Tier), MinCC: p.Tier,
		Words: Words, Steps: l.shape.Steps, Code: l.text[p.ID], Seeds: len(gs),
	})
	return nil
}

// Kernels gives the programs in the order in which they are to run, and their size.
func (l *Collection) Kernels() ([]kernels.Kernel, golden.Size) {
	return l.list, golden.SizeOfOwn("corpus", l.shape.Threads)
}

// Version is the corpus's, or kept where there is none but what is kept.
func (l *Collection) Version() string { return l.version }

// Known gives the golden of a program and seed.
func (l *Collection) Known(id string, seed int) (golden.Digest, error) {
	gs := l.goldens[id]
	if seed < 0 || seed >= len(gs) {
		return golden.Digest{}, fmt.Errorf("no golden for program %s, seed %d", id, seed)
	}
	return gs[seed], nil
}

// Block computes the words that a block ends with, on the PTX machine.
func (l *Collection) Block(id string, seed, steps int) ([]uint32, error) {
	m, err := ptxvm.Parse(l.text[id])
	if err != nil {
		return nil, err
	}
	return plainRun(m.Entries[id], 90, uint64(seed), l.shape.Threads, steps)
}

func dayNumber(day time.Time) int64 { return day.UTC().Unix() / (24 * 3600) }

// In gives the corpora that a path names, in order of their names: itself, or those in it.
func In(dir string) ([]string, error) {
	if isCorpus(dir) {
		return []string{dir}, nil
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", manifestFile))
	for i, f := range found {
		found[i] = filepath.Dir(f)
	}
	return found, err
}

// OfTheDay picks one of the corpora that a path names: each day the next. Empty: there is none.
func OfTheDay(dir string, day time.Time) (string, error) {
	found, err := In(dir)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[int(dayNumber(day))%len(found)], nil
}

// Today puts together what a folder of corpora gives for a day: the programs that are kept in it, and one of its corpora, each day
// the next; or the corpus in dir itself, with what is kept beside it.
func Today(dir string, day time.Time) (*Collection, error) {
	from, err := OfTheDay(dir, day)
	if err != nil {
		return nil, err
	}
	var c *Corpus
	if from != "" {
		if c, err = Load(from); err != nil {
			return nil, err
		}
	}
	kept, err := ReadKept(KeptIn(dir))
	if err != nil {
		return nil, err
	}
	l, err := Collect(c, kept, day)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return l, nil
}

// KeptIn is where programs that once caught a device are kept: in a folder of corpora, or beside the corpus that dir is.
func KeptIn(dir string) string {
	if isCorpus(dir) {
		return KeptBeside(dir)
	}
	return filepath.Join(dir, "kept")
}

// KeptBeside is likewise where those are that a corpus in dir, which need not be there yet, has beside it.
func KeptBeside(dir string) string { return filepath.Join(filepath.Dir(filepath.Clean(dir)), "kept") }

func isCorpus(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestFile))
	return err == nil
}

// KeepCatches writes every program that has found something on a GPU into the folder of those that are kept, for ever, and gives
// their names.
func (l *Collection) KeepCatches(dir string, r golden.Result, at time.Time) (kept []string, err error) {
	var errs []error
	caught := l.Catches(r, at)
	for _, id := range slices.Sorted(maps.Keys(caught)) {
		k, _ := l.Kept(id)
		if err := Keep(KeptIn(dir), k, caught[id]); err != nil {
			errs = append(errs, fmt.Errorf("keep program %s: %w", id, err))
			continue
		}
		kept = append(kept, id)
	}
	return kept, errors.Join(errs...)
}

// Catches gives what programs of the collection have found on a GPU: wrong words that were there when they were read again,
// with inputs that were intact, and that came back in a rerun. These are the programs to keep.
func (l *Collection) Catches(r golden.Result, at time.Time) map[string]Catch {
	out := map[string]Catch{}
	for _, s := range r.Stages {
		if _, ours := l.goldens[s.Kernel]; !ours {
			continue
		}
		for _, m := range s.SMs {
			if m.Mismatch != nil && m.Mismatch.Reread && m.Mismatch.Inputs && s.Reproduced(m.SM) > 0 {
				out[s.Kernel] = Catch{At: at.UTC(), GPU: r.GPU.UUID, Capability: r.GPU.Capability, Driver: r.GPU.Driver, SM: m.SM, Seed: s.Seed, Words: m.Mismatch.Words, Simulated: r.GPU.Simulated}
				break
			}
		}
	}
	return out
}

// Kept gives the program as one to keep.
func (l *Collection) Kept(id string) (Kept, bool) {
	for _, k := range l.list {
		if k.ID != id {
			continue
		}
		text := l.text[id][len(head(k.MinCC)):]
		p := Program{ID: id, Tier: k.MinCC, Digest: sha([]byte(text))[:32], Candidate: -1}
		for _, g := range l.goldens[id] {
			p.Goldens = append(p.Goldens, g.String())
		}
		return Kept{Format: Format, Shape: l.shape, Program: p, Text: text}, true
	}
	return Kept{}, false
}

// Only leaves just these programs; none named leaves all. A name that is not there is an error.
func (l *Collection) Only(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		if _, have := l.goldens[id]; !have {
			return fmt.Errorf("program %q: neither the corpus nor what is kept has it", id)
		}
	}
	l.list = slices.DeleteFunc(l.list, func(k kernels.Kernel) bool { return !slices.Contains(ids, k.ID) })
	return nil
}
