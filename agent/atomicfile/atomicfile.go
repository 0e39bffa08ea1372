// Package atomicfile writes small state files so that a reader, or the same program after a power cut, finds either
// the old content or the new and never a part: a temporary file beside the target, fsync, rename, fsync of the folder.
package atomicfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix starts the name of every temporary file, so that leftovers of a crash can be told and removed.
const TempPrefix = ".tmp-"

// Write replaces path with data, durably. The file gets mode perm.
func Write(path string, data []byte, perm fs.FileMode) error { return WriteOn(OS, path, data, perm) }

// WriteOn is Write on another file system.
func WriteOn(fsys FS, path string, data []byte, perm fs.FileMode) (err error) {
	dir, base := filepath.Split(path)
	tmp := filepath.Join(dir, TempPrefix+base)
	f, err := fsys.Create(tmp, perm)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = fsys.Remove(tmp) // best effort: what is left is told by its prefix and removed at the next start
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Clean(dir))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteJSON replaces path with v as JSON, mode 0600.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Write(path, append(data, '\n'), 0o600)
}

// ReadJSON reads path into v. A file that is not there is no error: found is false. A file that does not parse is.
func ReadJSON(path string, v any) (found bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// Remove deletes path, durably. A path that is not there is no error.
func Remove(path string) error {
	if err := OS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return OS.SyncDir(filepath.Dir(path))
}
