package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/assay-gpu/assay/coordinator/authority"
)

// ListenUnix listens on path, mode 0600. A socket left behind by a dead process is replaced; one that still answers is
// an error. Whoever the kernel says is root or owns the socket is an admin, named after the OS user.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if st, err := os.Lstat(path); err == nil {
		if st.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %s: a file that is no socket is there", path)
		}
		d := net.Dialer{Timeout: time.Second}
		if c, err := d.DialContext(ctx, "unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen on %s: another process answers there", path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the old socket: %w", err)
		}
	}
	var lc net.ListenConfig
	// The umask is the process's, not ours to change with other goroutines at work; until chmod the peer check alone
	// guards the socket.
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		ln.Close()
		return nil, fmt.Errorf("protect the socket: %w", err)
	}
	return ln, nil
}

// peer says who is at the other end of a unix connection.
func peer(c net.Conn, path string) caller {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return caller{deny: "not a unix connection"}
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return caller{deny: "peer credentials: " + err.Error()}
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		credErr = err
	}
	if credErr != nil {
		return caller{deny: "peer credentials: " + credErr.Error()}
	}
	if cred.Uid != 0 && !owns(cred.Uid, path) {
		return caller{deny: fmt.Sprintf("user id %d is neither root nor the socket's owner", cred.Uid)}
	}
	return caller{kind: authority.Operator, name: userName(cred.Uid), role: authority.RoleAdmin}
}

func owns(uid uint32, path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == uid
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil && authority.ValidName(u.Username) {
		return u.Username
	}
	return "uid" + id
}
