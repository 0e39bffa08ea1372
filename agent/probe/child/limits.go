package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits bound what a program may use.
type Limits struct {
	Memory   uint64 // bytes of address space; 0: no bound
	Files    uint64 // open files
	FileSize uint64 // bytes in a file that it writes
	CPU      uint64 // seconds of processor time; 0: no bound
}

// args are the limits as Become reads them.
func (l Limits) args() []string {
	var out []string
	for _, n := range []uint64{l.Memory, l.Files, l.FileSize, l.CPU} {
		out = append(out, strconv.FormatUint(n, 10))
	}
	return append(append([]string{keeper}, out...), "--")
}

// Become sets the limits that args begin with on this process and becomes the program that the rest names: it returns only
// with an error. The program can gain no privilege, and dumps no core. With the word keep before the limits it has another
// process become the program, and stays above all that this starts until it has ended.
func Become(args []string) error {
	if len(args) > 0 && args[0] == keeper {
		return keep(args)
	}
	if len(args) < 6 || args[4] != "--" {
		return errors.New("limits: want four numbers, -- and a command")
	}
	var n [4]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(args[i], 10, 64); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	argv := args[5:]
	path, err1 := syscall.BytePtrFromString(argv[0])
	list, err2 := syscall.SlicePtrFromStrings(argv)
	env, err3 := syscall.SlicePtrFromStrings(os.Environ())
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	for _, l := range []struct {
		which int
		max   uint64
		zero  bool // 0 is a bound too
	}{
		{unix.RLIMIT_CORE, 0, true}, {unix.RLIMIT_NOFILE, n[1], false}, {unix.RLIMIT_FSIZE, n[2], false}, {unix.RLIMIT_CPU, n[3], false},
	} {
		if l.max == 0 && !l.zero {
			continue
		}
		r := bound(l.which, l.max)
		if err := unix.Setrlimit(l.which, &r); err != nil {
			return fmt.Errorf("limit %d to %d: %w", l.which, l.max, err)
		}
	}
	// The bound of memory comes last and holds for this process too, which may be larger already: from there on nothing here may
	// ask for memory, not even a collector on another thread.
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	memory := bound(unix.RLIMIT_AS, n[0])
	var errno syscall.Errno
	if n[0] > 0 {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&memory)), 0, 0, 0)
	}
	if errno == 0 {
		// Not syscall.Exec: it would put the number of files back to what it was when this process began.
		_, _, errno = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&env[0])))
	}
	return fmt.Errorf("%s: %w", argv[0], errno)
}

// bound is a limit of at most n, or what this process was bounded to before where that is less.
func bound(which int, n uint64) unix.Rlimit {
	var now unix.Rlimit
	if unix.Getrlimit(which, &now) == nil && now.Max < n {
		n = now.Max
	}
	return unix.Rlimit{Cur: n, Max: n}
}

// Trusted returns why a program is not safe to run as this user: it, or a folder above it, belongs to, or can be changed by,
// someone else than this user and root. What links point to is what counts.
func Trusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		var e *os.PathError
		if errors.As(err, &e) {
			err = e.Err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	for p, first := real, true; ; p, first = filepath.Dir(p), false {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		sticky := !first && st.Mode&unix.S_ISVTX != 0
		switch {
		case first && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0):
			return fmt.Errorf("%s is no executable file", p)
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Errorf("%s belongs to user %d, who could make it anything", p, st.Uid)
		case st.Mode&0o002 != 0 && !sticky, st.Mode&0o020 != 0 && st.Gid != 0 && !sticky:
			return fmt.Errorf("%s can be changed by others (mode %04o)", p, st.Mode&0o7777)
		}
		if p == "/" || p == "." {
			return nil
		}
	}
}
