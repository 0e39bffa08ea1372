package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/store"
)

const childEnv = "ASSAY_STORE_TEST_CHILD" // endpoint and prefix of the store the child opens

// child is a process with a store, told what to do by lines on stdin:
//
//	campaign NAME       → leading TERM
//	commit KEY VALUE    → applied REVISION | the error
//	valid               → true | false
//	loop KEY            commits KEY = 1, 2, 3 ... until one fails, a line after each as above, with the number in front
func child() {
	endpoint, prefix, _ := strings.Cut(os.Getenv(childEnv), " ")
	s, err := store.Open(context.Background(), store.Config{Endpoints: []string{endpoint}, Prefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	var term *store.Term
	one := func(key, value string) string {
		rev, err := term.Commit(context.Background(), []store.Op{put(key, value)})
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint("applied ", rev)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch f := strings.Fields(in.Text()); f[0] {
		case "campaign":
			if term, err = s.Campaign(context.Background(), f[1], "", lease); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("leading", term.Number())
		case "commit":
			fmt.Println(one(f[1], f[2]))
		case "valid":
			fmt.Println(term.Valid())
		case "loop":
			for i := 1; ; i++ {
				answer := one(f[1], fmt.Sprint(i))
				fmt.Println(i, answer)
				if !strings.HasPrefix(answer, "applied") {
					break
				}
			}
		}
	}
}

type childProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    *os.File
	lines chan string // closed when the process has ended
}

func startChild(t *testing.T, endpoint, prefix string) *childProcess {
	t.Helper()
	c := &childProcess{t: t, lines: make(chan string, 100000)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(self)
	c.cmd.Env = append(os.Environ(), childEnv+"="+endpoint+" "+prefix)
	c.cmd.Stderr = t.Output()
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Stdin, c.in = r, w
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // see etcdtest
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.lines <- lines.Text()
		}
		_ = c.cmd.Wait()
		close(c.lines)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		for range c.lines {
		}
		w.Close()
	})
	return c
}

func (c *childProcess) tell(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
}

// ask tells the child a line and gives its answer.
func (c *childProcess) ask(line string) string {
	c.t.Helper()
	c.tell(line)
	select {
	case answer := <-c.lines:
		return answer
	case <-time.After(30 * time.Second):
		c.t.Fatalf("child: no answer to %q", line)
		return ""
	}
}

func (c *childProcess) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}
