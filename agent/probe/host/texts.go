package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Texts are what was read, by name; they are a Source that gives the same again. A name that begins with "link:" holds
// where a symbolic link points to. A text that begins with "error:" stands for an error, and one that begins with "hung:"
// for a group that did not come back, with how long it had been.
type Texts map[string]string

const (
	linkPrefix  = "link:"
	errorPrefix = "error:"
	hungPrefix  = "hung:"
)

// Text gives a text again.
func (t Texts) Text(name string) (string, error) {
	s, ok := t[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	if text, failed := strings.CutPrefix(s, errorPrefix); failed {
		return "", readError(text)
	}
	return s, nil
}

// readError is an error as it was; those that readers tell apart are themselves again.
func readError(text string) error {
	for _, known := range []error{fs.ErrNotExist, syscall.ENOENT, syscall.EACCES, syscall.EPERM, syscall.EINVAL, syscall.ENODEV, syscall.EOPNOTSUPP} {
		if known.Error() == text {
			return known
		}
	}
	return errors.New(text)
}

// List gives the entries below a directory of which something was read.
func (t Texts) List(dir string) ([]string, error) {
	if text, failed := strings.CutPrefix(t[dir], errorPrefix); failed {
		return nil, readError(text)
	}
	seen := map[string]bool{}
	for name := range t {
		if rest, below := strings.CutPrefix(strings.TrimPrefix(name, linkPrefix), dir+"/"); below {
			entry, _, _ := strings.Cut(rest, "/")
			seen[entry] = true
		}
	}
	if _, was := t[dir]; !was && len(seen) == 0 {
		return nil, fs.ErrNotExist
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// Link gives where a link points to again.
func (t Texts) Link(name string) (string, error) { return t.Text(linkPrefix + name) }

func (t Texts) hung(group string) (time.Duration, bool) {
	s, was := strings.CutPrefix(t[hungPrefix+group], hungPrefix)
	if !was {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// A recorder keeps what is read through it. It belongs to one group, and is not for several goroutines.
type recorder struct {
	src Source
	got Texts
}

func record(src Source) *recorder { return &recorder{src, Texts{}} }

func (r *recorder) keep(name, text string, err error) {
	switch {
	case err == nil:
		r.got[name] = text
	case !errors.Is(err, fs.ErrNotExist):
		r.got[name] = errorPrefix + err.Error()
	}
}

func (r *recorder) Text(name string) (string, error) {
	s, err := r.src.Text(name)
	r.keep(name, s, err)
	return s, err
}

// quiet reads without keeping: for what is looked at in every process.
func (r *recorder) quiet(name string) (string, error) { return r.src.Text(name) }

func (r *recorder) List(dir string) ([]string, error) {
	names, err := r.src.List(dir)
	r.keep(dir, "", err) // that it is there, even when nothing below it is worth reading
	return names, err
}

func (r *recorder) Link(name string) (string, error) {
	s, err := r.src.Link(name)
	r.keep(linkPrefix+name, s, err)
	return s, err
}

// word reads a file of one line; empty when it cannot be read.
func (r *recorder) word(format string, args ...any) string {
	s, _ := r.Text(fmt.Sprintf(format, args...))
	return strings.TrimSpace(s)
}

// told is a file's word, empty where there is no such file. Why another could not be read goes into err, the first of several.
func (r *recorder) told(err *string, format string, args ...any) string {
	name := fmt.Sprintf(format, args...)
	s, e := r.Text(name)
	if e != nil && !errors.Is(e, fs.ErrNotExist) && *err == "" {
		*err = path.Base(name) + ": " + e.Error()
	}
	return strings.TrimSpace(s)
}
