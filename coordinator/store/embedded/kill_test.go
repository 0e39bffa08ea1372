package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

const childEnv = "ASSAY_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := commitForEver(dir); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// commitForEver is a control plane that only counts: it leads on the directory's etcd and commits n+1 after the n it
// finds, two keys at once, and prints each number once it is acknowledged.
func commitForEver(dir string) error {
	ctx := context.Background()
	srv, err := embedded.Start(ctx, embedded.Config{Dir: dir})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Config{Endpoints: srv.Endpoints})
	if err != nil {
		return err
	}
	// The lock on the directory is ours: whoever led before is dead.
	if err := s.Depose(ctx); err != nil {
		return err
	}
	term, err := s.Campaign(ctx, "child", "", 4*time.Second)
	if err != nil {
		return err
	}
	e, err := s.Get(ctx, "count/a")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(e.Value)) // 0 at first
	for {
		n++
		value := []byte(strconv.Itoa(n))
		if _, err := term.Commit(ctx, []store.Op{{Key: "count/a", Value: value}, {Key: "count/b", Value: value}}); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// The process is killed again and again while it commits. Every acknowledged commit is there after, whole, and a new
// process leads within two seconds.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("waits")
	}
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for round := range 8 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = t.Output()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread() // Pdeathsig is sent when the thread ends
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			n, err := strconv.Atoi(lines.Text())
			if err != nil {
				t.Errorf("round %d: %s", round, lines.Text())
				break
			}
			if acknowledged == 0 || n != acknowledged+1 {
				// One commit may have been applied without its acknowledgement getting out.
				if n != acknowledged+1 && n != acknowledged+2 {
					t.Fatalf("round %d: %d acknowledged before the kill, and the next is %d", round, acknowledged, n)
				}
			}
			if acknowledged = n; time.Since(began) > time.Duration(600+70*round)*time.Millisecond {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		runtime.UnlockOSThread()
	}
	srv, s := serve(t, dir)
	defer srv.Close()
	defer s.Close()
	entries, _, err := s.List(t.Context(), "count/")
	if err != nil || len(entries) != 2 || string(entries[0].Value) != string(entries[1].Value) {
		t.Fatalf("half a commit: %v, %v", entries, err)
	}
	n, err := strconv.Atoi(string(entries[0].Value))
	if err != nil || n != acknowledged && n != acknowledged+1 {
		t.Errorf("%d acknowledged, %s in the store", acknowledged, entries[0].Value)
	}
	t.Logf("%d commits", acknowledged)
}

func serve(t testing.TB, dir string) (*embedded.Server, *store.Store) {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Config{Endpoints: srv.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	return srv, s
}

func TestSecondProcessIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("waits")
	}
	t.Parallel()
	dir := t.TempDir()
	srv, s := serve(t, dir)
	defer srv.Close()
	defer s.Close()
	_, err := embedded.Start(t.Context(), embedded.Config{Dir: dir})
	var locked *embedded.LockedError
	if !errors.As(err, &locked) || !strings.Contains(locked.Hint(), "another assayd") {
		t.Errorf("a second server on the directory: %v", err)
	}
}

// Who can reach the store owns the fleet, so nobody but its user can.
func TestAccess(t *testing.T) {
	dir := t.TempDir() + "/etcd"
	srv, s := serve(t, dir)
	defer srv.Close()
	defer s.Close()
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
	if want := "unix://" + dir + "/etcd.sock"; len(srv.Endpoints) != 1 || srv.Endpoints[0] != want {
		t.Errorf("endpoints %q, want %q alone", srv.Endpoints, want)
	}
	for _, listen := range []string{"0.0.0.0:0", "192.0.2.1:2379", "localhost:0", "2379"} {
		if _, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: listen}); err == nil || !strings.Contains(err.Error(), "etcd address") {
			t.Errorf("listen on %s: %v", listen, err)
		}
	}
}

func TestLoopback(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	if !strings.HasPrefix(srv.Endpoints[0], "http://127.0.0.1:") || strings.HasSuffix(srv.Endpoints[0], ":0") {
		t.Errorf("endpoint %s", srv.Endpoints[0])
	}
	s, err := store.Open(t.Context(), store.Config{Endpoints: srv.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// A path too long for a socket moves the socket, not the data.
func TestLongPath(t *testing.T) {
	dir := t.TempDir() + "/" + strings.Repeat("long", 25)
	srv, s := serve(t, dir)
	socket := strings.TrimPrefix(srv.Endpoints[0], "unix://")
	if _, err := os.Stat(socket); err != nil || strings.HasPrefix(socket, dir) {
		t.Errorf("socket %s: %v", socket, err)
	}
	if _, err := os.Stat(dir + "/member/wal"); err != nil {
		t.Error(err)
	}
	s.Close()
	srv.Close()
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket left behind: %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("shutting down")
	cancel(why)
	dir := t.TempDir()
	if _, err := embedded.Start(ctx, embedded.Config{Dir: dir}); !errors.Is(err, why) {
		t.Errorf("start: %v", err)
	}
	srv, s := serve(t, dir) // nothing of it is left
	s.Close()
	srv.Close()
}
