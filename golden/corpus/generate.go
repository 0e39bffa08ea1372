package corpus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"

	"github.com/assay-gpu/assay/golden"
)

// Options say what to generate.
type Options struct {
	Seed      uint64
	Programs  int    // how many to admit
	Keep      []Kept // programs that once caught a device: they are in, whatever they cover
	Tools     *Tools // nil: pairs are of the PTX, and no machine code is looked at
	Schedules int    // Schedules, when 0
	Progress  func(admitted, candidates int)

	batch int // batch, when 0
}

// batch is how many candidates go through the assembler together. It is part of what a seed means.
const batch = 16

// most candidates that are drawn for one admitted program, on the whole, before generation gives up.
const patience = 60

// Generate makes a corpus. When ctx ends it gives what was admitted until then, and the manifest says so; the error is then
// nil.
func Generate(ctx context.Context, o Options) (*Corpus, error) {
	if o.Schedules == 0 {
		o.Schedules = Schedules
	}
	g := &generator{Options: o, seen: map[pair]bool{}, ids: map[string]bool{}, m: Manifest{
		Format: Format, Generator: Version, Seed: o.Seed, Asked: o.Programs, Shape: Usual, Words: Words, Schedules: o.Schedules, Flips: Flips,
		Pairs: Basis{Of: "ptx"}, Gate: []string{}, Refused: map[string]int{},
	}}
	if o.Tools != nil {
		g.m.Pairs = Basis{Of: "sass", Build: o.Tools.describe(reference)}
		for _, tier := range []int{70, 80} {
			for _, b := range o.Tools.builds(tier) {
				g.m.Gate = append(g.m.Gate, o.Tools.describe(b))
			}
		}
	}
	if err := g.keep(ctx); err != nil {
		return nil, err
	}
	if g.batch == 0 {
		g.batch = batch
	}
	limit := patience*o.Programs + 10*batch
	for g.admitted < o.Programs && g.m.Stopped == "" {
		switch {
		case ctx.Err() != nil:
			g.m.Stopped = fmt.Sprintf("stopped after %d candidates: %v", g.m.Candidates, context.Cause(ctx))
		case g.m.Candidates >= limit:
			g.m.Stopped = fmt.Sprintf("%d candidates gave no more", g.m.Candidates)
		default:
			if err := g.round(ctx); err != nil && ctx.Err() == nil {
				return nil, err
			}
		}
	}
	g.m.Pairs.Count = len(g.seen)
	return pack(g.m, g.codes), nil
}

type generator struct {
	Options
	m        Manifest
	codes    []code // as m.Programs
	seen     map[pair]bool
	ids      map[string]bool
	admitted int
}

// keep takes in what must never be dropped.
func (g *generator) keep(ctx context.Context) error {
	var cs []code
	for _, k := range g.Options.Keep {
		if g.ids[k.ID] {
			continue
		}
		c, err := k.code()
		if err != nil {
			return err
		}
		g.ids[k.ID] = true
		g.m.Programs = append(g.m.Programs, k.Program)
		g.m.Programs[len(g.m.Programs)-1].Candidate = -1
		cs = append(cs, c)
	}
	g.codes = cs
	got, err := pairsOf(ctx, g.Tools, cs)
	for _, ps := range got {
		maps.Copy(g.seen, ps)
	}
	return err
}

// A candidate on its way.
type candidate struct {
	n       int
	p       program
	c       code
	news    map[pair]bool
	pairs   map[pair]bool
	digests []golden.Digest
	reached float64
	err     error
}

// round draws a batch and admits what is new in it.
func (g *generator) round(ctx context.Context) error {
	var cs []*candidate
	for range g.batch {
		n := g.m.Candidates
		g.m.Candidates++
		p := draw(seeded(g.Seed, n), 70+10*(n%2))
		cs = append(cs, &candidate{n: n, p: p, c: p.write()})
	}
	parallel(cs, func(c *candidate) { c.err = c.c.look(g.m.Shape) })
	cs = g.drop(cs)
	cs, err := g.novel(ctx, cs)
	if err != nil {
		return err
	}
	parallel(cs, func(c *candidate) {
		if c.err = c.c.look(g.m.Shape); c.err != nil {
			return
		}
		if c.digests, c.err = c.c.goldens(g.m.Shape, g.Options.Schedules); c.err != nil {
			return
		}
		c.reached, c.err = c.c.reach(seeded(g.Seed^0xF11B, c.n))
	})
	cs = g.drop(cs)
	if g.Tools != nil {
		bad, err := g.Tools.gate(ctx, codesOf(cs))
		if err != nil {
			return err
		}
		for i, e := range bad {
			cs[i].err = e
		}
		cs = g.drop(cs)
	}
	for _, c := range cs {
		g.admit(c)
	}
	if g.Progress != nil {
		g.Progress(g.admitted, g.m.Candidates)
	}
	return nil
}

// novel leaves the candidates that show a pair which none before them shows, each cut down to what that needs.
func (g *generator) novel(ctx context.Context, cs []*candidate) ([]*candidate, error) {
	got, err := pairsOf(ctx, g.Tools, codesOf(cs))
	if err != nil {
		return nil, err
	}
	seen := maps.Clone(g.seen)
	for i, c := range cs {
		c.news = beyond(got[i], seen)
		if len(c.news) == 0 {
			c.err = refuse(notNew, "%s", c.c.id)
		}
		maps.Copy(seen, got[i])
	}
	cs = g.drop(cs)
	var ps []program
	var news []map[pair]bool
	for _, c := range cs {
		ps, news = append(ps, c.p), append(news, c.news)
	}
	if ps, err = minimise(ctx, g.Tools, ps, news); err != nil {
		return nil, err
	}
	for i, c := range cs {
		c.p = ps[i]
		c.c = c.p.write()
	}
	got, err = pairsOf(ctx, g.Tools, codesOf(cs))
	for i, c := range cs {
		c.pairs = got[i]
	}
	return cs, err
}

// admit takes a program in, unless there are enough, or what was new of it has come with another.
func (g *generator) admit(c *candidate) {
	news := beyond(c.pairs, g.seen)
	switch {
	case g.admitted >= g.Programs:
		return
	case len(news) == 0, g.ids[c.c.id]:
		g.m.Refused[notNew]++
		return
	}
	maps.Copy(g.seen, c.pairs)
	g.ids[c.c.id] = true
	g.admitted++
	p := Program{ID: c.c.id, Tier: c.c.tier, Digest: c.c.digest, Candidate: c.n, Ops: c.p.ops(), New: len(news), Reached: c.reached}
	for _, d := range c.digests {
		p.Goldens = append(p.Goldens, d.String())
	}
	g.m.Programs = append(g.m.Programs, p)
	g.codes = append(g.codes, c.c)
}

// drop counts and leaves out those that were refused.
func (g *generator) drop(cs []*candidate) []*candidate {
	var out []*candidate
	for _, c := range cs {
		var r *refusal
		switch {
		case c.err == nil:
			out = append(out, c)
		case errors.As(c.err, &r):
			g.m.Refused[r.why]++
		default:
			g.m.Refused["error"]++
		}
	}
	return out
}

func beyond(have, seen map[pair]bool) map[pair]bool {
	out := map[pair]bool{}
	for p := range have {
		if !seen[p] {
			out[p] = true
		}
	}
	return out
}

func codesOf(cs []*candidate) []code {
	out := make([]code, 0, len(cs))
	for _, c := range cs {
		out = append(out, c.c)
	}
	return out
}

// parallel runs f on each, on all cores. What one does depends on no other.
func parallel[T any](in []T, f func(T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, x := range in {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(x)
		})
	}
	wg.Wait()
}

// pack puts programs together: one module a tier.
func pack(m Manifest, cs []code) *Corpus {
	c := &Corpus{Manifest: m, files: map[string]string{}, entries: map[string]string{}}
	for _, tier := range []int{70, 80} {
		var b strings.Builder
		b.WriteString(head(tier))
		n := 0
		for _, k := range cs {
			if k.tier == tier {
				b.WriteString(k.text)
				c.entries[k.id] = k.text
				n++
			}
		}
		if n == 0 {
			continue
		}
		file := fmt.Sprintf("sm_%d.ptx", tier)
		c.files[file] = b.String()
		c.Manifest.Modules = append(c.Manifest.Modules, Module{File: file, Tier: tier, SHA256: sha([]byte(b.String()))})
	}
	return c
}
