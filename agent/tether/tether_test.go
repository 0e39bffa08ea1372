package tether

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const childEnv = "ASSAY_TETHER_TEST"

// As a child this program starts a process of its own, says its number, and waits to be killed.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		cmd := exec.Command("sleep", "1000")
		if _, err := Start(cmd, syscall.SIGKILL, nil); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
		select {}
	}
	os.Exit(m.Run())
}

// It ends with the process that started it, also when that is killed.
func TestEndsWithItsStarter(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	proc, err := Start(cmd, syscall.SIGKILL, read)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	close(read)
	if err := proc.Wait(); err == nil {
		t.Error("it was killed, and Wait has no error")
	}
	stat := "/proc/" + strings.TrimSpace(line) + "/stat"
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(stat); err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", stat)
		}
	}
}

// Threads of the starter end; what it started goes on.
func TestOutlivesThreads(t *testing.T) {
	var all []*Process
	for range 8 {
		proc, err := Start(exec.Command("sleep", "0.2"), syscall.SIGKILL, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, proc)
		gone := make(chan struct{})
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			close(gone)
		}()
		<-gone
	}
	for _, proc := range all {
		if err := proc.Wait(); err != nil {
			t.Error(err)
		}
		select {
		case <-proc.Done():
		default:
			t.Error("waited for, and not done")
		}
	}
}

func TestWhatDoesNotStart(t *testing.T) {
	if _, err := Start(exec.Command("/nowhere/to/be/found"), syscall.SIGKILL, nil); err == nil {
		t.Error("it started")
	}
}
