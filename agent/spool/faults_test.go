package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-gpu/assay/agent/atomicfile"
)

// A faultyFS fails its operation number at, counted from 1; 0: none. sticky: every one from there on.
type faultyFS struct {
	atomicfile.FS
	n, at  int
	sticky bool
	err    error
}

func (f *faultyFS) step() error {
	f.n++
	if f.at > 0 && (f.n == f.at || f.sticky && f.n > f.at) {
		return f.err
	}
	return nil
}

func (f *faultyFS) Create(path string, perm fs.FileMode) (atomicfile.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(path, perm)
	return &faultyFile{file, f}, err
}

func (f *faultyFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faultyFS) Remove(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Remove(path)
}

func (f *faultyFS) SyncDir(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.SyncDir(path)
}

func (f *faultyFS) ReadFile(path string) ([]byte, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	return f.FS.ReadFile(path)
}

type faultyFile struct {
	atomicfile.File
	fs *faultyFS
}

// Write writes half before it fails, as a disk that fills up does.
func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.fs.step(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Close() error {
	err := f.fs.step()
	return errors.Join(f.File.Close(), err)
}

// unsynced is the file system without the waits for the disk.
type unsynced struct{ atomicfile.FS }

func (u unsynced) Create(path string, perm fs.FileMode) (atomicfile.File, error) {
	f, err := u.FS.Create(path, perm)
	return unsyncedFile{f}, err
}

func (unsynced) SyncDir(string) error { return nil }

type unsyncedFile struct{ atomicfile.File }

func (unsyncedFile) Sync() error { return nil }

// Every file operation fails in turn: no failure is lost, none comes before an earlier one, and one that Put said is on
// disk is there after a kill.
func TestEveryOperationFailsInTurn(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for at := 1; ; at++ {
			ffs := &faultyFS{FS: unsynced{atomicfile.OS}, at: at, err: cause}
			dir := t.TempDir()
			s, err := OpenOn(ffs, dir, 1<<20)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			durable := map[string]bool{}
			for i, r := range []string{"f1", "r1", "f2", "r2", "f3"} {
				rep := failure(r)
				if r[0] == 'r' {
					rep = routine(r)
				}
				if err := s.Put(rep); err == nil && r[0] == 'f' {
					durable[r] = true
				} else if err != nil && !errors.Is(err, cause) {
					t.Fatalf("%v at %d, put %d: %v", cause, at, i, err)
				}
			}
			reached := ffs.n >= at
			// Killed here: a second spool on the same folder sees what is on disk.
			onDisk := drain(open(t, copyDir(t, dir), 1<<20))
			for id := range durable {
				if !strings.Contains(onDisk, id) {
					t.Errorf("%v at operation %d: Put of %s returned nil, and a restart finds %q", cause, at, id, onDisk)
				}
			}
			// Not killed: everything comes out, failures in order, once the disk is well.
			ffs.at = 0
			got := drain(s)
			if fails := onlyFailures(got); fails != "f1 f2 f3" {
				t.Errorf("%v at operation %d: got %q", cause, at, got)
			}
			if !reached {
				if at < 20 {
					t.Fatalf("only %d operations: the test exercises nothing", at)
				}
				break
			}
		}
	}
}

func TestADiskThatStaysFullKeepsFailuresInMemory(t *testing.T) {
	dir := t.TempDir()
	ffs := &faultyFS{FS: unsynced{atomicfile.OS}, at: 1, sticky: true, err: syscall.ENOSPC}
	s, err := OpenOn(ffs, dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxMemory + 10 {
		_ = s.Put(failure(fmt.Sprintf("f%04d", i))) // each says that it is not on disk
	}
	st := s.Stats()
	if st.InMemory != maxMemory || st.DroppedFailure != 10 || st.WriteErrors == 0 {
		t.Fatalf("stats %+v", st)
	}
	ffs.at = 0
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.InMemory != 0 || st.Reports != maxMemory {
		t.Fatalf("once there is room: %+v", st)
	}
}

// A real full disk: a tmpfs of 64 KiB. It needs root; CI must have it.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("mount a tmpfs: %v: CI must be able to", err)
		}
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	s := open(t, dir, 1<<20)
	for i := range 40 {
		if err := s.Put(routine(fmt.Sprintf("r%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		if err := s.Put(failure(fmt.Sprintf("f%d", i))); err != nil {
			t.Fatalf("failure %d on a full disk: %v: routine reports should have made room", i, err)
		}
	}
	st := s.Stats()
	if st.DroppedRoutine == 0 || st.DroppedFailure != 0 {
		t.Fatalf("stats %+v", st)
	}
	if got := onlyFailures(drain(open(t, dir, 1<<20))); got != "f0 f1 f2 f3 f4 f5" {
		t.Fatalf("after a restart: %q", got)
	}
}

func onlyFailures(ids string) string {
	var out []string
	for id := range strings.FieldsSeq(ids) {
		if id[0] == 'f' {
			out = append(out, id)
		}
	}
	return strings.Join(out, " ")
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// stubborn is a file system on which no folder can be made while it refuses.
type stubborn struct {
	atomicfile.FS
	refuses bool
}

func (s *stubborn) MkdirAll(path string, perm fs.FileMode) error {
	if s.refuses {
		return syscall.EROFS
	}
	return s.FS.MkdirAll(path, perm)
}

func TestAFolderThatCannotBeMadeIsMadeLater(t *testing.T) {
	disk := &stubborn{unsynced{atomicfile.OS}, true}
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := OpenOn(disk, dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(failure("f1")); err == nil {
		t.Error("Put says that the report is on disk")
	}
	if st := s.Stats(); st.Reports != 1 || st.InMemory != 1 {
		t.Fatalf("stats %+v: want one report in memory", st)
	}
	disk.refuses = false
	if err := s.Put(failure("f2")); err != nil {
		t.Fatal(err)
	}
	if got := drain(open(t, dir, 1<<20)); got != "f1 f2" {
		t.Errorf("on disk: %q", got)
	}
}
