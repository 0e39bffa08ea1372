package vectors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds each file that is read.
const maxFile = 256 << 20

// Verify reads a folder and says what of it is not as its manifest says, in order: files that differ, are missing or are
// nobody's, and vectors that do not fit their kernels. The error is of a folder that holds no vectors that this program
// knows.
func Verify(dir string) (Manifest, []string, error) {
	b, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return Manifest{}, nil, err
	}
	m, err := parse(b)
	if err != nil {
		return m, nil, fmt.Errorf("%s: %w", filepath.Join(dir, ManifestFile), err)
	}
	var wrong []string
	for _, path := range slices.Sorted(maps.Keys(m.Files)) {
		want := m.Files[path]
		got, err := readFile(filepath.Join(dir, filepath.FromSlash(path)))
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case len(got) != want.Bytes || sha(got) != want.SHA256:
			wrong = append(wrong, fmt.Sprintf("%s: %d bytes with SHA-256 %s, the manifest says %d and %s", path, len(got), sha(got), want.Bytes, want.SHA256))
		}
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if rel = filepath.ToSlash(rel); err == nil && rel != ManifestFile {
			if _, ok := m.Files[rel]; !ok {
				wrong = append(wrong, rel+": the manifest does not name it")
			}
		}
		return err
	})
	return m, wrong, err
}

func readFile(path string) ([]byte, error) {
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: no plain file", path)
	case st.Size() > maxFile:
		return nil, fmt.Errorf("%s: %d bytes, more than %d", path, st.Size(), maxFile)
	}
	return os.ReadFile(path)
}

// parse reads manifest.json and holds it together: every path is in the folder and named, every vector fits its kernel.
func parse(b []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	if m.Format != Format {
		return m, fmt.Errorf("format %d: this program reads format %d", m.Format, Format)
	}
	var errs []error
	for path := range m.Files {
		if !fs.ValidPath(path) || strings.Contains(path, "\\") || path == ManifestFile {
			errs = append(errs, fmt.Errorf("file %q: want a path in the folder", path))
		}
	}
	for _, k := range m.Kernels {
		named := func(what, path string, size int) {
			f, ok := m.Files[path]
			if !ok {
				errs = append(errs, fmt.Errorf("%s: %s %q is not among the files", k.ID, what, path))
			} else if size >= 0 && f.Bytes != size {
				errs = append(errs, fmt.Errorf("%s: %s has %d bytes, want %d", k.ID, path, f.Bytes, size))
			}
		}
		named("code", k.Code, -1)
		named("source", k.Source, -1)
		for _, v := range k.Seeds {
			named("input", v.Input, 4*k.Words*m.Threads)
			named("golden", v.Golden, 4*k.Words*m.Threads)
			if h := m.Files[v.Golden].SHA256; len(h) < 32 || h[:32] != v.Digest {
				errs = append(errs, fmt.Errorf("%s, seed %d: digest %s is not that of its golden", k.ID, v.Seed, v.Digest))
			}
		}
	}
	return m, errors.Join(errs...)
}
