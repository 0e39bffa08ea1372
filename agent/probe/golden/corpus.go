package golden

import (
	"errors"
	"time"

	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/corpus"
)

// programs are those that a run has beside its suite's kernels. The zero value: none.
type programs struct {
	dir  string
	day  time.Time
	list *corpus.Collection
	err  error // why there are none, though policy names a folder
}

// ofTheDay gives what a folder of corpora holds for a day. A folder that cannot be read costs its programs, and not the run.
func ofTheDay(dir string, day time.Time) programs {
	if dir == "" {
		return programs{}
	}
	p := programs{dir: dir, day: day}
	p.list, p.err = corpus.Today(dir, day)
	return p
}

// args has a child run them.
func (p programs) args() []string {
	if p.list == nil {
		return nil
	}
	return []string{"--corpora", p.dir, "--day", p.day.UTC().Format(time.DateOnly)}
}

// note keeps for ever what has caught the GPU, and says in the result why there were no programs, or why one is not kept.
func (p programs) note(r *golden.Result) {
	err := p.err
	if p.list != nil {
		_, failed := p.list.KeepCatches(p.dir, *r, time.Now())
		err = errors.Join(err, failed)
	}
	if err != nil {
		r.CorpusErr = err.Error()
	}
}
