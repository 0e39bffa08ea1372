package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxText bounds one text. Node-wide lists such as /proc/1/mounts are the longest.
const maxText = 1 << 20

// A System is the machine. Its roots may be others than the machine's own, as those of a simulated node.
type System struct {
	Sysfs, Proc string // /sys and /proc
	Calls       string // a directory that holds the answers of statfs, adjtimex and NVMe disks as files; empty: ask the kernel
}

// CallFile is the name of the file in System.Calls that holds the answer of a call on a path, or of a call on none.
func CallFile(call, path string) string {
	if path == "" {
		return call
	}
	return call + "-" + url.PathEscape(path)
}

// path is where a name is in the file system.
func (s System) path(name string) (string, error) {
	switch root, rest, _ := strings.Cut(name, "/"); root {
	case "sys":
		return filepath.Join(s.Sysfs, rest), nil
	case "proc":
		return filepath.Join(s.Proc, rest), nil
	}
	return "", fmt.Errorf("%s: no such root", name)
}

// Text reads a file or makes a call.
func (s System) Text(name string) (string, error) {
	if call, path, _ := strings.Cut(name, "/"); call == "statfs" || call == "adjtimex" || call == "smart" {
		return s.call(call, path)
	}
	p, err := s.path(name)
	if err != nil {
		return "", err
	}
	return readFile(p)
}

// readFile reads a file by plain system calls: there are thousands of small ones, and package os makes each ready to be
// waited for.
func readFile(path string) (string, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 512)
	for len(b) < maxText {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(8*cap(b), maxText)), b...)
		}
		n, err := retry(func() (int, error) { return unix.Read(fd, b[len(b):cap(b)]) })
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		b = b[:len(b)+n]
	}
	return string(b), nil
}

func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// bare takes the path out of an error: the root differs from machine to machine, and the name says it already.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (s System) call(call, path string) (string, error) {
	if call == "statfs" {
		path = "/" + path
	}
	if s.Calls != "" {
		return readFile(filepath.Join(s.Calls, CallFile(call, path)))
	}
	if call == "smart" {
		return s.smart(path)
	}
	if call == "statfs" {
		// By the first process's root: our own may be a view of it in which home directories are hidden. Who may not look
		// there takes the view.
		var st unix.Statfs_t
		err := unix.Statfs(filepath.Join(s.Proc, "1/root", path), &st)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			err = unix.Statfs(path, &st)
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("bsize=%d blocks=%d bavail=%d files=%d ffree=%d", st.Bsize, st.Blocks, st.Bavail, st.Files, st.Ffree), nil
	}
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("state=%d status=%d maxerror=%d", state, tx.Status, tx.Maxerror), nil
}

// List reads a directory.
func (s System) List(dir string) ([]string, error) {
	p, err := s.path(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, bare(err)
}

// Link reads a symbolic link.
func (s System) Link(name string) (string, error) {
	p, err := s.path(name)
	if err != nil {
		return "", err
	}
	to, err := os.Readlink(p)
	return to, bare(err)
}
