package corpus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/golden/ptxvm"
	"github.com/assay-gpu/assay/golden/sass"
)

// small is a corpus that costs little.
func small(seed uint64) Options { return Options{Seed: seed, Programs: 2, Schedules: 2, batch: 3} }

func generate(t *testing.T, ctx context.Context, o Options) *Corpus {
	t.Helper()
	c, err := Generate(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// five is the corpus of seed 5, which several tests look at and none changes.
var five = sync.OnceValues(func() (*Corpus, error) { return Generate(context.Background(), small(5)) })

func ofSeedFive(t *testing.T) *Corpus {
	t.Helper()
	c, err := five()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func saved(t *testing.T, c *Corpus) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "corpus")
	if err := c.Save(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whatever the grammar draws is of the grammar, runs, and stays a program when ops are taken away.
func TestEveryDrawnProgramRuns(t *testing.T) {
	for i := range 16 {
		p := draw(seeded(1, i), 70+10*(i%2))
		for p.ops() > 0 {
			c := p.write()
			if err := lint(c.body, c.tier); err != nil {
				t.Fatalf("%v\n%s", err, c.text)
			}
			e, err := c.parse()
			if err != nil {
				t.Fatalf("%v\n%s", err, c.text)
			}
			if _, err := plainRun(e, 90, 1, 64, 2); err != nil {
				t.Fatalf("%v\n%s", err, c.text)
			}
			at := p.places()[i%p.ops()]
			p = p.without(at[0], at[1])
		}
	}
}

// The same seed gives the same bytes, another one others; the goldens hold when they are found anew.
func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	a, b := saved(t, ofSeedFive(t)), saved(t, generate(t, t.Context(), small(5)))
	names, err := filepath.Glob(a + "/*")
	if err != nil || len(names) < 2 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, n := range names {
		x, err1 := os.ReadFile(n)
		y, err2 := os.ReadFile(filepath.Join(b, filepath.Base(n)))
		if err := errors.Join(err1, err2); err != nil || string(x) != string(y) {
			t.Errorf("%s: not the same bytes (%v)", filepath.Base(n), err)
		}
	}
	c, err := Load(a)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Manifest.Programs); n != 2 || c.Manifest.Stopped != "" {
		t.Errorf("%d programs, %q", n, c.Manifest.Stopped)
	}
	for _, p := range c.Manifest.Programs {
		if p.New < 1 || p.Reached < 0.99 {
			t.Errorf("%+v", p)
		}
	}
	faults, err := c.Verify(t.Context(), 1, nil)
	if err != nil || len(faults) != 0 {
		t.Errorf("%v, %v", faults, err)
	}
	c.Manifest.Programs[1].Goldens[2] = strings.Repeat("0", 32)
	faults, err = c.Verify(t.Context(), 1, nil)
	if err != nil || len(faults) != 1 || faults[0].ID != c.Manifest.Programs[1].ID || !strings.Contains(faults[0].Why, "seed 2") {
		t.Errorf("%v, %v", faults, err)
	}
}

// Interrupted, generation gives what it has admitted, and says so.
func TestInterruptedGenerationKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	o := small(5)
	o.Programs = 1000
	o.Progress = func(admitted, _ int) {
		if admitted > 0 {
			cancel(errors.New("somebody pressed Ctrl-C"))
		}
	}
	c := generate(t, ctx, o)
	if n := len(c.Manifest.Programs); n == 0 || n > o.batch || !strings.Contains(c.Manifest.Stopped, "Ctrl-C") {
		t.Errorf("%d programs, %q", n, c.Manifest.Stopped)
	}
	if _, err := Load(saved(t, c)); err != nil {
		t.Error(err)
	}
}

// A program that once caught a device is in every corpus that is generated beside it, though it covers nothing new.
func TestWhatCaughtADeviceIsKept(t *testing.T) {
	first := ofSeedFive(t)
	p, dir := first.Manifest.Programs[0], filepath.Join(t.TempDir(), "kept")
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		if err := Keep(dir, first.Kept(p), Catch{At: at.Add(time.Duration(i/2) * time.Hour), GPU: "GPU-1", SM: 3}); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := ReadKept(dir)
	if err != nil || len(kept) != 1 || len(kept[0].Caught) != 2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	o := small(6)
	o.Keep = kept
	next := generate(t, t.Context(), o)
	got := next.Manifest.Programs[0]
	if got.ID != p.ID || got.Candidate != -1 || len(got.Caught) != 2 || len(next.Manifest.Programs) != 3 || !reflect.DeepEqual(got.Goldens, p.Goldens) {
		t.Errorf("%+v", next.Manifest.Programs)
	}
	if text, ok := next.Text(p.ID); !ok || text != kept[0].Text {
		t.Error("its text is not in the module")
	}
	bad := kept[0]
	bad.Text += "// something else\n"
	if err := Keep(dir, bad, Catch{}); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a damaged program was kept: %v", err)
	}
}

func TestDamagedCorporaAreRefused(t *testing.T) {
	c := ofSeedFive(t)
	for _, tt := range []struct{ name, file, from, to, say string }{
		{"a module with another word", c.Manifest.Modules[0].File, "shf.l.wrap", "shf.r.wrap", "SHA-256"},
		{"another format", manifestFile, `"format": 1`, `"format": 2`, "format 2"},
		{"a field nobody knows", manifestFile, `"format": 1`, `"format": 1, "colour": 1`, "colour"},
		{"a module elsewhere", manifestFile, `"file": "sm_`, `"file": "../sm_`, "in the corpus's folder"},
		{"a program's other digest", manifestFile, `"digest": "`, `"digest": "0`, "the manifest says"},
		{"a program without goldens", manifestFile, `"seeds": 4`, `"seeds": 5`, "goldens for 5 seeds"},
		{"too many threads", manifestFile, `"threads": 128`, `"threads": 100`, "threads"},
		{"a name that is a path", manifestFile, `"id": "c`, `"id": "../c`, "not a name"},
	} {
		dir := saved(t, c)
		path := filepath.Join(dir, tt.file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.Replace(string(b), tt.from, tt.to, 1)
		if s == string(b) {
			t.Fatalf("%s: nothing replaced", tt.name)
		}
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// by writes a program by hand around a step.
func by(write func(e *emitter)) code {
	e := newEmitter("c70_000000000000", 70)
	write(e)
	for i := range 4 {
		e.ins("xor.b32 %%x%d, %%x%d, %%x%d", i+4, i+4, i)
	}
	step := e.b.String()
	return code{id: e.id, tier: 70, body: step, text: entry(e.id, step, e)}
}

// What admission is there to refuse, it refuses.
func TestAdmissionRefuses(t *testing.T) {
	s := Shape{Threads: 64, Steps: 4, Seeds: 1}
	why := func(c code) string {
		err := c.look(s)
		if err == nil {
			_, err = c.goldens(s, 8)
		}
		if err == nil {
			_, err = c.reach(seeded(1, 1))
		}
		var r *refusal
		errors.As(err, &r)
		if r == nil {
			return ""
		}
		return r.why
	}
	for _, tt := range []struct {
		want  string
		write func(e *emitter)
	}{
		{"", func(e *emitter) { d := e.word(); e.ins("xor.b32 %s, %%x0, %%i", d); e.ins("add.u32 %%x4, %%x4, %s", d) }},
		{badFlips, func(e *emitter) { d := e.word(); e.ins("xor.b32 %s, %%x0, %%i", d); e.ins("and.b32 %s, %s, 1", d, d) }},
		{badFloat, func(e *emitter) {
			d := e.word()
			e.ins("mul.rn.f32 %s, %%x0, %%x1", d)
			e.ins("add.u32 %%x4, %%x4, %s", d)
		}},
		{badTrap, func(e *emitter) { // nothing orders the two accesses
			d, from := e.word(), e.other(1)
			e.ins("st.shared.u32 [%%own], %%x0")
			e.ins("ld.shared.u32 %s, [%s]", d, from)
			e.ins("add.u32 %%x4, %%x4, %s", d)
		}},
		{badSchedules, func(e *emitter) { d := e.word(); e.ins("mov.u32 %s, %%clock", d); e.ins("add.u32 %%x4, %%x4, %s", d) }},
		{badGrammar, func(e *emitter) { d := e.word(); e.ins("add.f32 %s, %%x0, %%x1", d) }},
		{badGrammar, func(e *emitter) { d := e.word(); e.ins("rcp.approx.f32 %s, %%x0", d) }},
		{badGrammar, func(e *emitter) { d := e.word(); e.ins("shfl.sync.bfly.b32 %s, %%x0, 1, 31, 0xffffffff", d) }},
		{badGrammar, func(e *emitter) { d := e.word(); e.joined(); e.ins("shfl.sync.bfly.b32 %s, %%x0, 1, 31, 0xffff", d) }},
		{badGrammar, func(e *emitter) { d, to := e.word(), e.other(1); e.ins("atom.shared.add.u32 %s, [%s], %%x0", d, to) }},
		{badGrammar, func(e *emitter) { d := e.word(); e.ins("redux.sync.add.u32 %s, %%x0, 0xffffffff", d) }},
	} {
		c := by(tt.write)
		if got := why(c); got != tt.want {
			t.Errorf("%s: refused for %q, want %q", strings.SplitN(c.body, "\n", 3)[:2], got, tt.want)
		}
	}
}

func TestSASS(t *testing.T) {
	text, err := os.ReadFile("testdata/sm_90.sass")
	if err != nil {
		t.Fatal(err)
	}
	fs := readSASS(string(text))
	code := fs["c80_95bc837a78de"]
	if len(fs) != 1 || len(code) != strings.Count(string(text), ";") {
		t.Fatalf("%d functions, %d instructions of %d", len(fs), len(code), strings.Count(string(text), ";"))
	}
	if code[0] != (sassInst{"LDC", "Rc"}) || code[5] != (sassInst{"ISETP.NE.U32.AND", "PPRRP"}) || code[6] != (sassInst{"BRA", "i?"}) {
		t.Errorf("%v", code[:8])
	}
	if p := pairsOfSASS(code); !p["BRA after ISETP.NE.U32.AND i?"] || !p["LDC after entry Rc"] {
		t.Errorf("%v", p)
	}
	step := lines("\tatom.global.add.u32 %r0, [%scratch], %r1;\n", 1)
	if why := missing(step, code, nil); why != "" {
		t.Error(why)
	}
	if why := missing(step, code, code); !strings.Contains(why, "0 of atomg") {
		t.Errorf("what is the frame's counts for the step: %q", why)
	}
	for _, op := range []string{"fma.rn.f32 %r0, %r1, %r2, %r3", "popc.b32 %r0, %r1", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r0}, {%r1}, {%r2}, {%r3}"} {
		if why := missing(lines("\t"+op+";\n", 1), code[:10], nil); why == "" {
			t.Errorf("%s is not missed", op)
		}
	}
}

// The assemblers, where they are at hand: an admitted program comes through every build, and one that is made away with does
// not.
func TestCorpusGate(t *testing.T) {
	kits, err := sass.FindForTest()
	if err != nil {
		t.Fatal(err)
	}
	if kits == nil {
		t.Skip("ptxas is not unpacked: make deps does that")
	}
	tools := &Tools{kits}
	dead := by(func(e *emitter) { d := e.word(); e.ins("popc.b32 %s, %%x0", d) })
	bad, err := tools.gate(t.Context(), []code{by(func(e *emitter) { d := e.word(); e.ins("popc.b32 %s, %%x0", d); e.ins("add.u32 %%x4, %%x4, %s", d) })})
	if err != nil || len(bad) != 0 {
		t.Errorf("%v, %v", bad, err)
	}
	bad, err = tools.gate(t.Context(), []code{dead})
	if err != nil || len(bad) != 1 || !strings.Contains(bad[0].Error(), "popc") {
		t.Errorf("an instruction whose result is not used came through: %v, %v", bad, err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"threads":128,"steps":16,"seeds":1,"words":8,"modules":[{"file":"sm_70.ptx","tier":70}],"programs":[{"id":"c70_0123456789ab","tier":70,"goldens":[""]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		for _, p := range m.Programs {
			if err == nil && strings.ContainsAny(p.ID, "/\\") {
				t.Errorf("%q", p.ID)
			}
		}
	})
}

func FuzzParseKept(f *testing.F) {
	f.Add([]byte(`{"format":1,"threads":128,"steps":16,"seeds":4,"id":"c70_0123456789ab","text":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := parseKept(b); err == nil {
			if _, err := ptxvm.Parse(head(k.Tier) + k.Text); err != nil {
				t.Skip() // its digest is right: that is all it says of itself
			}
		}
	})
}

func FuzzReadSASS(f *testing.F) {
	f.Add("\t\tFunction : f\n        /*0000*/                   LDC R1, c[0x0][0x28] ;\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, code := range readSASS(s) {
			pairsOfSASS(code)
		}
	})
}
