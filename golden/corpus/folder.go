package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Corpus is a manifest and the programs that it names.
type Corpus struct {
	Manifest Manifest
	Digest   string            // SHA-256 of manifest.json: the corpus's version; empty for one that was not saved
	files    map[string]string // PTX of each module
	entries  map[string]string // text of each program
}

const manifestFile = "manifest.json"

// maxFile bounds each file that is read: a thousand programs are some 10 MB.
const maxFile = 64 << 20

// Save writes the corpus into dir, which it makes. The manifest comes last: without it a folder is no corpus.
func (c *Corpus) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, m := range c.Manifest.Modules {
		if err := replace(filepath.Join(dir, m.File), []byte(c.files[m.File])); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(c.Manifest, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	c.Digest = sha(b)
	return replace(filepath.Join(dir, manifestFile), b)
}

// replace writes a file so that a reader sees the old one or the new one, whole.
func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Load reads a corpus and holds every file to its digest.
func Load(dir string) (*Corpus, error) {
	b, err := read(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestFile), err)
	}
	c := &Corpus{Manifest: m, Digest: sha(b), files: map[string]string{}, entries: map[string]string{}}
	for _, mod := range m.Modules {
		path := filepath.Join(dir, mod.File)
		b, err := read(path)
		if err != nil {
			return nil, err
		}
		if got := sha(b); got != mod.SHA256 {
			return nil, fmt.Errorf("%s: SHA-256 is %s, the manifest says %s", path, got, mod.SHA256)
		}
		c.files[mod.File] = string(b)
		for id, text := range split(string(b)) {
			c.entries[id] = text
		}
	}
	for _, p := range m.Programs {
		text, ok := c.entries[p.ID]
		if !ok {
			return nil, fmt.Errorf("%s: no module holds program %s", dir, p.ID)
		}
		if got := sha([]byte(text))[:32]; got != p.Digest {
			return nil, fmt.Errorf("%s: program %s has digest %s, the manifest says %s", dir, p.ID, got, p.Digest)
		}
	}
	return c, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: more than %d bytes", path, maxFile)
	}
	return b, err
}

// parseManifest reads manifest.json. A field that it does not know refuses it.
func parseManifest(b []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	switch {
	case m.Format != Format:
		return m, fmt.Errorf("format %d: this program reads format %d", m.Format, Format)
	case m.Threads < 32 || m.Threads > 256 || m.Threads&(m.Threads-1) != 0:
		return m, fmt.Errorf("%d threads a block: want 32, 64, 128 or 256", m.Threads)
	case m.Steps < 1 || m.Steps > 1<<16:
		return m, fmt.Errorf("%d steps: want 1 to 65536", m.Steps)
	case m.Seeds < 1 || m.Seeds > 64:
		return m, fmt.Errorf("%d seeds: want 1 to 64", m.Seeds)
	case m.Words != Words:
		return m, fmt.Errorf("%d words a thread: want %d", m.Words, Words)
	}
	for _, mod := range m.Modules {
		if filepath.Base(mod.File) != mod.File || mod.File == "." || mod.File == ".." {
			return m, fmt.Errorf("module %q: want a file in the corpus's folder", mod.File)
		}
	}
	ids := map[string]bool{}
	for _, p := range m.Programs {
		switch {
		case !validID(p.ID):
			return m, fmt.Errorf("program %q: not a name that a generator gives", p.ID)
		case ids[p.ID]:
			return m, fmt.Errorf("program %s: twice", p.ID)
		case len(p.Goldens) != m.Seeds:
			return m, fmt.Errorf("program %s: %d goldens for %d seeds", p.ID, len(p.Goldens), m.Seeds)
		case !slices.ContainsFunc(m.Modules, func(mod Module) bool { return mod.Tier == p.Tier }):
			return m, fmt.Errorf("program %s: no module of its tier %d", p.ID, p.Tier)
		}
		ids[p.ID] = true
	}
	return m, nil
}

// validID says whether a name is one that the generator gives: it becomes a file's name.
func validID(id string) bool {
	rest, ok := strings.CutPrefix(id, "c70_")
	if !ok {
		rest, ok = strings.CutPrefix(id, "c80_")
	}
	return ok && len(rest) == 12 && strings.Trim(rest, "0123456789abcdef") == ""
}

// split cuts a module into its programs.
func split(module string) map[string]string {
	out := map[string]string{}
	const begin = ".visible .entry "
	for i, part := range strings.Split(module, begin) {
		if i == 0 {
			continue
		}
		id, _, _ := strings.Cut(part, "(")
		out[id] = begin + part
	}
	return out
}

// Text is a program's PTX.
func (c *Corpus) Text(id string) (string, bool) {
	t, ok := c.entries[id]
	return t, ok
}

// Lookup finds a program by its name, or by a beginning of it that no other has.
func (c *Corpus) Lookup(name string) (Program, error) {
	var found []Program
	for _, p := range c.Manifest.Programs {
		if p.ID == name {
			return p, nil
		}
		if strings.HasPrefix(p.ID, name) {
			found = append(found, p)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Program{}, fmt.Errorf("program %q: %d of %d programs have that name", name, len(found), len(c.Manifest.Programs))
}

// codeOf takes a program's text apart again.
func codeOf(p Program, text string) (code, error) {
	_, rest, ok1 := strings.Cut(text, "\t"+stepBegins+"\n")
	body, _, ok2 := strings.Cut(rest, "\t"+stepEnds+"\n")
	if !ok1 || !ok2 {
		return code{}, fmt.Errorf("program %s: its text shows no step", p.ID)
	}
	return code{id: p.ID, tier: p.Tier, text: text, body: body, digest: p.Digest}, nil
}
