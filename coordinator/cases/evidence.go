// Package cases keeps the evidence of cases: files named by what is in them, so that one that was changed is no longer found
// under its name, and the same file of two cases is kept once.
package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// MaxFile is the most bytes one file of evidence may have; an nvidia-bug-report of a node with eight GPUs has about 10 MiB.
const MaxFile = 64 << 20

// Evidence is a folder of files by their SHA-256, in hex.
type Evidence struct{ dir string }

// Open makes the folder if it is not there. What an interrupted Put left behind is removed.
func Open(dir string) (*Evidence, error) {
	if err := os.MkdirAll(filepath.Join(dir, "new"), 0o700); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "new", "*"))
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	for _, f := range left {
		if err := os.Remove(f); err != nil {
			return nil, fmt.Errorf("evidence: %w", err)
		}
	}
	return &Evidence{dir}, nil
}

// ValidSum reports whether sum can name a file: 64 digits of lower-case hex.
func ValidSum(sum string) bool {
	b, err := hex.DecodeString(sum)
	return err == nil && len(b) == sha256.Size && hex.EncodeToString(b) == sum
}

// A MismatchError says that a file is not the one that its name says.
type MismatchError struct{ Want, Got string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("evidence %.12s: its content has the sum %.12s", e.Want, e.Got)
}

// Status is HTTP's 422: the same bytes will be refused again.
func (e *MismatchError) Status() int { return 422 }

// A FullError says that the disk is too full for evidence.
type FullError struct{ Free uint64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("evidence: %d MiB are free on the disk, and %d are left to the rest of the control plane", e.Free>>20, leaveFree>>20)
}

// Status is HTTP's 507.
func (e *FullError) Status() int { return 507 }

// Hint says what to do.
func (e *FullError) Hint() string { return "make room on the disk of assayd's state directory" }

// leaveFree is how much of the disk evidence leaves to others, in bytes: etcd shares it and stops the fleet when it is full.
const leaveFree = 1 << 30

// Put keeps what r gives under sum, durable when it returns nil. A file that is there already is not read.
func (e *Evidence) Put(sum string, r io.Reader) error {
	if e.Has(sum) {
		return nil
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(e.dir, &st); err == nil {
		if free := st.Bavail * uint64(st.Bsize); free < leaveFree {
			return &FullError{free}
		}
	}
	f, err := os.CreateTemp(filepath.Join(e.dir, "new"), "e*")
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	defer os.Remove(f.Name()) // renamed away when all went well
	defer f.Close()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(r, MaxFile+1))
	if err != nil {
		return fmt.Errorf("evidence %.12s: %w", sum, err)
	}
	if n > MaxFile {
		return fmt.Errorf("evidence %.12s: it has more than %d MiB", sum, MaxFile>>20)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return &MismatchError{sum, got}
	}
	if err := errors.Join(f.Sync(), f.Chmod(0o400)); err != nil {
		return fmt.Errorf("evidence %.12s: %w", sum, err)
	}
	to := e.path(sum)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	return errors.Join(syncDir(filepath.Dir(to)), syncDir(e.dir))
}

// Has reports whether the file is kept.
func (e *Evidence) Has(sum string) bool {
	if !ValidSum(sum) {
		return false
	}
	_, err := os.Stat(e.path(sum))
	return err == nil
}

// Get opens a file. The error is fs.ErrNotExist when it is not kept.
func (e *Evidence) Get(sum string) (f *os.File, size int64, err error) {
	if !ValidSum(sum) {
		return nil, 0, fmt.Errorf("evidence %.80q: %w", sum, fs.ErrNotExist)
	}
	if f, err = os.Open(e.path(sum)); err != nil {
		return nil, 0, fmt.Errorf("evidence %.12s: %w", sum, err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("evidence %.12s: %w", sum, err)
	}
	return f, st.Size(), nil
}

// Sweep removes what no case names any more and is older than age, and says how many files that were.
func (e *Evidence) Sweep(named func(sum string) bool, before time.Time) (removed int, err error) {
	err = filepath.WalkDir(filepath.Join(e.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !ValidSum(d.Name()) || named(d.Name()) {
			return err
		}
		st, err := d.Info()
		if err != nil || st.ModTime().After(before) {
			return err
		}
		removed++
		return os.Remove(path)
	})
	return removed, err
}

func (e *Evidence) path(sum string) string { return filepath.Join(e.dir, sum[:2], sum) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("evidence: %w", err)
	}
	return nil
}
