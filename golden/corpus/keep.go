package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Kept is a program that once caught a device. It is a file of its own, so that it outlives its corpus, and every corpus
// that is generated beside it holds it.
type Kept struct {
	Format int `json:"format"`
	Shape
	Program
	Text string `json:"text"` // its PTX, without a module's head
}

func (k Kept) code() (code, error) {
	if k.Format != Format {
		return code{}, fmt.Errorf("kept program %s: format %d: this program reads format %d", k.ID, k.Format, Format)
	}
	if k.Shape != Usual {
		return code{}, fmt.Errorf("kept program %s: it runs %d threads, %d steps and %d seeds, a corpus %d, %d and %d", k.ID, k.Threads, k.Steps, k.Seeds, Usual.Threads, Usual.Steps, Usual.Seeds)
	}
	if got := sha([]byte(k.Text))[:32]; got != k.Digest || !validID(k.ID) || len(k.Goldens) != k.Seeds {
		return code{}, fmt.Errorf("kept program %s: its text has digest %s, and it says %s", k.ID, got, k.Digest)
	}
	return codeOf(k.Program, k.Text)
}

// Kept gives the program of a corpus as one to keep.
func (c *Corpus) Kept(p Program) Kept {
	return Kept{Format: Format, Shape: c.Manifest.Shape, Program: p, Text: c.entries[p.ID]}
}

// ReadKept reads all kept programs of a folder, by name. A folder that is not there holds none.
func ReadKept(dir string) ([]Kept, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Kept
	for _, n := range names { // in order
		if strings.HasPrefix(n.Name(), ".") || !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		b, err := read(filepath.Join(dir, n.Name()))
		if err != nil {
			return nil, err
		}
		k, err := parseKept(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, n.Name()), err)
		}
		out = append(out, k)
	}
	return out, nil
}

func parseKept(b []byte) (Kept, error) {
	var k Kept
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		return k, err
	}
	_, err := k.code()
	return k, err
}

// Keep writes a program that has caught a device into a folder, or adds the catch to it there.
func Keep(dir string, k Kept, c Catch) error {
	if _, err := k.code(); err != nil {
		return err
	}
	path := filepath.Join(dir, k.ID+".json")
	if b, err := read(path); err == nil {
		old, err := parseKept(b)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		k.Caught = old.Caught
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(k.Caught, func(o Catch) bool { return o.GPU == c.GPU && o.SM == c.SM && o.At.Equal(c.At) }) {
		return nil
	}
	k.Caught = append(slices.Clone(k.Caught), c)
	if n := len(k.Caught) - maxCaught; n > 0 {
		k.Caught = slices.Delete(k.Caught, 1, 1+n) // the first and the latest stay
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(b, '\n'))
}

// maxCaught bounds what is remembered of one program.
const maxCaught = 100
