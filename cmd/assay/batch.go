package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/sbatch"
)

// A batchFile is the jobs of a file, ready to be sent, and the lines that are none.
type batchFile struct {
	jobs    []wire.BatchJob
	scripts []string
	index   map[string]int // by text: where in scripts
	files   map[string]string
	asks    map[string]wire.BatchJob // by line: many are alike
	faults  []wire.BatchAnswer
	ignored map[string]bool
}

// batchAtOnce is the jobs of one request.
const batchAtOnce = 500

// batchTries is how often a request that was not answered is sent again: a new leader is there within seconds.
const batchTries = 8

// A batchResult is what became of a batch.
type batchResult struct {
	Key       string             `json:"key"`
	Submitted int                `json:"submitted"`
	Again     int                `json:"again,omitempty"` // lines that had been taken before
	First     int64              `json:"first,omitempty"`
	Last      int64              `json:"last,omitempty"`
	Seconds   float64            `json:"seconds"`
	Faults    []wire.BatchAnswer `json:"faults,omitempty"`
}

// submitBatch submits each line of a file. What it asks for twice is asked for under the same key.
func (a *app) submitBatch(ctx context.Context, c *client.Client, name, key string, options []string) error {
	b, err := a.readBatch(name, options)
	if err != nil {
		return err
	}
	if len(b.ignored) > 0 {
		fmt.Fprintf(a.err, "makes no difference here: %s\n", strings.Join(slices.Sorted(maps.Keys(b.ignored)), ", "))
	}
	if key == "" {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails: package crypto/rand
		key = hex.EncodeToString(raw[:])
	}
	if len(b.jobs) > batchAtOnce {
		fmt.Fprintf(a.err, "batch %s: if it breaks off, say it again with --batch-key %s\n", key, key)
	}
	result := batchResult{Key: key, Faults: b.faults}
	env := b.env()
	bar, began := a.progress("submitted"), time.Now()
	for from := 0; from < len(b.jobs); from += batchAtOnce {
		part := b.jobs[from:min(from+batchAtOnce, len(b.jobs))]
		answers, err := a.sendBatch(ctx, c, b.request(key, env, part))
		if err != nil {
			bar.clear()
			return fmt.Errorf("lines %d to %d not known to be taken; say it again with --batch-key %s: %w", part[0].Line, part[len(part)-1].Line, key, err)
		}
		for _, x := range answers {
			result.take(x)
		}
		bar.show(min(from+batchAtOnce, len(b.jobs)), len(b.jobs))
	}
	bar.clear()
	result.Seconds = time.Since(began).Seconds()
	for _, f := range result.Faults {
		fmt.Fprintf(a.err, "%s:%d: %s\n", name, f.Line, clean(f.Error))
	}
	err = a.emit(result, func() error {
		text := count(result.Submitted, "job") + " submitted"
		if result.Submitted > 0 {
			text += fmt.Sprintf(", %d to %d, in %.1f s", result.First, result.Last, result.Seconds)
		}
		if result.Again > 0 {
			text += fmt.Sprintf("; %d had been before", result.Again)
		}
		if n := len(result.Faults); n > 0 {
			text += fmt.Sprintf("; %s not", count(n, "line"))
		}
		_, err := fmt.Fprintln(a.out, text)
		return err
	})
	if err == nil && len(result.Faults) > 0 {
		return errFault
	}
	return err
}

// request is a part of the batch with the scripts that it needs.
func (b *batchFile) request(key string, env []string, part []wire.BatchJob) wire.Batch {
	r := wire.Batch{Key: key, Env: env, Jobs: slices.Clone(part)}
	at := map[int]int{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		k, ok := at[j.Script]
		if !ok {
			k = len(r.Scripts)
			at[j.Script] = k
			r.Scripts = append(r.Scripts, b.scripts[j.Script])
		}
		j.Script = k
	}
	return r
}

func (r *batchResult) take(x wire.BatchAnswer) {
	switch {
	case x.Error != "":
		r.Faults = append(r.Faults, x)
		return
	case x.Again:
		r.Again++
	default:
		r.Submitted++
		if r.First == 0 {
			r.First = x.ID
		}
		r.Last = x.ID
	}
}

// sendBatch sends one part, again and again while nobody answers. A refusal is final.
func (a *app) sendBatch(ctx context.Context, c *client.Client, b wire.Batch) (answers []wire.BatchAnswer, err error) {
	for try := range batchTries {
		sctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("no answer within 2m0s"))
		answers, err = c.SubmitBatch(sctx, b)
		cancel()
		var refused interface{ Status() int }
		if err == nil || errors.As(err, &refused) && refused.Status() < 500 && refused.Status() != 421 {
			return answers, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(250*time.Millisecond<<try, 5*time.Second)):
		}
	}
	return nil, err
}

// env is the environment that all jobs have which say nothing else.
func (b *batchFile) env() []string {
	return exported(sbatch.Request{ExportAll: true})
}

func (a *app) readBatch(name string, options []string) (*batchFile, error) {
	b := &batchFile{index: map[string]int{}, files: map[string]string{}, asks: map[string]wire.BatchJob{}, ignored: map[string]bool{}}
	r := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &usageError{err.Error(), "name a file with a job a line, or - for standard input"}
		}
		defer f.Close()
		r = f
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := a.batchLine(b, n, line, options); err != nil {
			b.faults = append(b.faults, wire.BatchAnswer{Line: n, Error: err.Error()})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, &usageError{fmt.Sprintf("read %s: %v", name, err), "a job a line"}
	}
	if len(b.jobs)+len(b.faults) == 0 {
		return nil, &usageError{name + ": there is no job in it", "a job a line: options, and the script"}
	}
	return b, nil
}

// batchLine reads one line: options, which win over the command line's, and a script last.
func (a *app) batchLine(b *batchFile, n int, line string, options []string) error {
	if same, ok := b.asks[line]; ok {
		same.Line = n
		b.jobs = append(b.jobs, same)
		return nil
	}
	words, err := sbatch.Words(line)
	if err != nil {
		return err
	}
	if len(words) == 0 || strings.HasPrefix(words[len(words)-1], "-") {
		return errors.New("no script: name it last")
	}
	file := words[len(words)-1]
	text, ok := b.files[file]
	if !ok {
		if file == "-" {
			return errors.New("a script from standard input cannot be in a batch")
		}
		if text, err = a.readScript(file); err != nil {
			return err
		}
		b.files[file] = text
	}
	all := append(options[:len(options):len(options)], words[:len(words)-1]...)
	ask, ignored, err := a.askFor(file, text, all)
	if err != nil {
		return err
	}
	for _, o := range ignored {
		b.ignored[o] = true
	}
	ask.Script = ""
	if !custom(all, text) {
		ask.Env = nil // the batch's
	}
	i, ok := b.index[text]
	if !ok {
		i = len(b.scripts)
		b.index[text] = i
		b.scripts = append(b.scripts, text)
	}
	b.asks[line] = wire.BatchJob{Line: n, Script: i, Ask: ask}
	b.jobs = append(b.jobs, b.asks[line])
	return nil
}

// custom reports whether anything says which variables go with a job.
func custom(options []string, script string) bool {
	for _, o := range options {
		if strings.HasPrefix(o, "--export") {
			return true
		}
	}
	return strings.Contains(script, "--export")
}
