package kmsg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A source gives the bytes of the log. All but wait are called with the reader's lock held; none but wait blocks.
type source interface {
	// read fills p with what is there: n 0 and no error when there is nothing now. restarted: the log began anew, and p
	// holds its first bytes.
	read(p []byte) (n int, restarted bool, err error)
	// pending reports whether read would give something.
	pending() (bool, error)
	// wait returns when there may be something to read, or ctx is done.
	wait(ctx context.Context) error
	close() error
}

// openSource opens path, a character device or a regular file.
func openSource(path string) (source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Mode().IsRegular() {
		return openFile(path)
	}
	return openDevice(path)
}

// A device is /dev/kmsg: each read gives one record.
type device struct{ f *os.File }

func openDevice(path string) (*device, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &device{f}, nil
}

func (d *device) read(p []byte) (n int, restarted bool, err error) {
	err = control(d.f, func(fd int) error {
		for {
			n, err = unix.Read(fd, p)
			switch err {
			case unix.EINTR, unix.EPIPE: // EPIPE: the record was overwritten; the next read gives the oldest there is
				continue
			case unix.EAGAIN:
				n, err = 0, nil
			}
			return err
		}
	})
	return max(n, 0), false, err
}

func (d *device) pending() (ready bool, err error) {
	err = control(d.f, func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		ready = fds[0].Revents != 0
		return err
	})
	return ready, err
}

// wait must not read: a record read here would be gone. It lets the runtime's poller watch the device.
func (d *device) wait(ctx context.Context) error {
	return waitReadable(ctx, d.f, func(fd int) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, _ := unix.Poll(fds, 0)
		return n > 0
	})
}

func (d *device) close() error { return d.f.Close() }

// A file is a regular file that grows as /dev/kmsg would show it. A file that shrinks or is replaced is a new boot's log.
type file struct {
	path   string
	f      *os.File
	offset int64
	notify *os.File // inotify on the folder
}

func openFile(path string) (*file, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	notify := os.NewFile(uintptr(fd), "inotify")
	// The folder, not the file: a file renamed over it is seen too.
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_CREATE); err != nil {
		notify.Close()
		return nil, fmt.Errorf("inotify on %s: %w", filepath.Dir(path), err)
	}
	f, err := os.Open(path)
	if err != nil {
		notify.Close()
		return nil, err
	}
	return &file{path: path, f: f, notify: notify}, nil
}

func (s *file) read(p []byte) (n int, restarted bool, err error) {
	n, err = s.readHere(p)
	if n > 0 || err != nil {
		return n, false, err
	}
	// At the end. The old log has been read; is this still the log?
	anew, err := s.begunAnew()
	if err != nil || !anew {
		return 0, false, err
	}
	f, err := os.Open(s.path)
	if err != nil {
		return 0, false, err
	}
	s.f.Close()
	s.f, s.offset = f, 0
	n, err = s.readHere(p)
	return n, true, err
}

func (s *file) readHere(p []byte) (int, error) {
	n, err := unix.Pread(int(s.f.Fd()), p, s.offset)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", s.path, err)
	}
	s.offset += int64(n)
	return n, nil
}

// begunAnew reports whether path is another file than the one open, or shorter than what was read.
func (s *file) begunAnew() (bool, error) {
	var here, there unix.Stat_t
	if err := unix.Fstat(int(s.f.Fd()), &here); err != nil {
		return false, err
	}
	if err := unix.Stat(s.path, &there); err != nil {
		if err == unix.ENOENT {
			return false, nil // between two boots
		}
		return false, fmt.Errorf("stat %s: %w", s.path, err)
	}
	return here.Ino != there.Ino || here.Dev != there.Dev || here.Size < s.offset, nil
}

func (s *file) pending() (bool, error) {
	st, err := s.f.Stat()
	if err != nil {
		return false, err
	}
	if st.Size() > s.offset {
		return true, nil
	}
	return s.begunAnew()
}

func (s *file) wait(ctx context.Context) error {
	return waitReadable(ctx, s.notify, func(fd int) bool {
		var b [4096]byte
		n, err := unix.Read(fd, b[:])
		return n > 0 || err != unix.EAGAIN && err != unix.EINTR
	})
}

func (s *file) close() error {
	return errors.Join(s.f.Close(), s.notify.Close())
}

// control runs f on the file's descriptor, which stays open meanwhile.
func control(file *os.File, f func(fd int) error) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// waitReadable waits until ready reports true for a descriptor the runtime's poller watches, or ctx is done. It holds no
// thread meanwhile.
func waitReadable(ctx context.Context, file *os.File, ready func(fd int) bool) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		if err := file.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
		err := c.Read(func(fd uintptr) bool { return ready(int(fd)) })
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) { // else: an earlier wait's deadline came late
			return err
		}
	}
}
