package atomicfile

import (
	"io"
	"io/fs"
	"os"
)

// A File is what Write needs of an open file.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// An FS is the file operations that can fail on a full or broken disk. Tests put their own in its place.
type FS interface {
	Create(path string, perm fs.FileMode) (File, error) // truncates
	ReadFile(path string) ([]byte, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Rename(from, to string) error
	Remove(path string) error
	MkdirAll(path string, perm fs.FileMode) error
	SyncDir(path string) error
}

// OS is the real file system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Create(path string, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) ReadFile(path string) ([]byte, error)         { return os.ReadFile(path) }
func (osFS) ReadDir(path string) ([]fs.DirEntry, error)   { return os.ReadDir(path) }
func (osFS) Rename(from, to string) error                 { return os.Rename(from, to) }
func (osFS) Remove(path string) error                     { return os.Remove(path) }
func (osFS) MkdirAll(path string, perm fs.FileMode) error { return os.MkdirAll(path, perm) }

func (osFS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
