package launch

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
)

// An account is whom a job's processes run as.
type account struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

// login looks a user up on this node. An agent that is not root can start jobs of its own user only.
func login(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, fmt.Errorf("user %s is not known on this node: %w", name, err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		return account{}, fmt.Errorf("user %s has ids %q and %q", name, u.Uid, u.Gid)
	}
	a := account{name: u.Username, home: u.HomeDir, uid: uint32(uid), gid: uint32(gid)}
	if os.Geteuid() != 0 {
		if int(uid) != os.Geteuid() {
			return a, fmt.Errorf("this agent does not run as root and cannot start jobs of %s", name)
		}
		return a, nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return a, fmt.Errorf("groups of %s: %w", name, err)
	}
	for _, s := range ids {
		if g, err := strconv.ParseUint(s, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(g))
		}
	}
	return a, nil
}

// credential is for starting a process; nil where the agent has nothing to change.
func (a account) credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

// openAs opens a file for appending with the user's own rights: the path is the user's to name, and the agent is root.
func (a account) openAs(path string) (*os.File, error) {
	if os.Geteuid() != 0 {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	}
	type opened struct {
		f   *os.File
		err error
	}
	got := make(chan opened, 1)
	go func() {
		// The ids are this thread's alone. It is never unlocked, so the thread ends with the goroutine.
		runtime.LockOSThread()
		got <- func() opened {
			groups := make([]uint32, len(a.groups))
			copy(groups, a.groups)
			if err := setThreadGroups(groups); err != nil {
				return opened{nil, fmt.Errorf("groups of %s: %w", a.name, err)}
			}
			if err := syscall.Setfsgid(int(a.gid)); err != nil {
				return opened{nil, fmt.Errorf("group of %s: %w", a.name, err)}
			}
			if err := syscall.Setfsuid(int(a.uid)); err != nil {
				return opened{nil, fmt.Errorf("become %s: %w", a.name, err)}
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
			return opened{f, err}
		}()
	}()
	o := <-got
	return o.f, o.err
}
