package nvml

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/agent/tether"
)

// Errors of one request.
var (
	errHung = errors.New("passed its deadline")
	errDied = errors.New("probe process ended")
)

// A process is one running child. One goroutine at a time talks to it.
type process struct {
	*tether.Process
	cmd      *exec.Cmd
	stdin    *os.File
	messages chan message // closed when the child's output ends
	stderr   *tailWriter
	kill     func(*os.Process) error

	lastCall string // the driver call announced last
	lastGPU  string // the key of the GPU it was for; empty for none
	answered map[string]bool
	calls    uint64 // driver calls announced
	killedAt time.Time

	events bool // it was asked to tell of XIDs
}

// startProcess starts a child in its own process group. It gets SIGKILL when this process ends, however it ends. event is
// called with what the child tells unasked, from a goroutine of the process, and must not wait.
func startProcess(argv, env []string, cgroup *os.File, event func(XIDEvent)) (*process, error) {
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		stdin.Close()
		return nil, err
	}
	p := &process{
		cmd: exec.Command(argv[0], argv[1:]...), stdin: stdin, messages: make(chan message, 16),
		stderr: &tailWriter{}, answered: map[string]bool{},
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, p.stderr
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cgroup != nil {
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, int(cgroup.Fd())
	}
	p.Process, err = tether.Start(p.cmd, syscall.SIGKILL, nil)
	childIn.Close()
	childOut.Close()
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	go p.receive(stdout, event)
	return p, nil
}

// receive reads the child's lines until its output ends.
func (p *process) receive(stdout *os.File, event func(XIDEvent)) {
	defer stdout.Close()
	defer close(p.messages)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 0, 2048), 64<<10)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			return // not our child's words: as good as ended
		}
		if m.Event != nil {
			m.Event.At = time.Now()
			event(*m.Event)
			continue
		}
		select {
		case p.messages <- m:
		case <-p.Done():
			return
		}
	}
}

// ask sends a request for the GPU named key, empty for none, and returns its reply. It fails with errHung when the reply
// has not come within the deadline, and with errDied when the child ended. After either the process is of no more use.
func (p *process) ask(r request, key string, deadline time.Duration, each func(message)) (message, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return message{}, err
	}
	p.lastCall, p.lastGPU = "", key
	if _, err := p.stdin.Write(append(b, '\n')); err != nil {
		return message{}, p.died()
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-p.messages:
			switch {
			case !ok:
				return m, p.died()
			case m.Call != "":
				p.lastCall = m.Call
				p.calls++
			case m.Init != nil || m.Node != nil || m.GPU != nil:
				p.answered[key] = true
				return m, nil
			default:
				each(m)
			}
		case <-timer.C:
			return message{}, errHung
		}
	}
}

// died says how the child ended.
func (p *process) died() error {
	select {
	case <-p.Done():
	case <-time.After(time.Second):
		return fmt.Errorf("%w: its output ended", errDied)
	}
	how := "exit status 0"
	if err := p.Wait(); err != nil {
		how = err.Error()
	}
	if p.lastCall != "" {
		how += " in " + p.lastCall
	}
	if s := p.stderr.last(); s != "" {
		how += ": " + s
	}
	return fmt.Errorf("%w: %s", errDied, how)
}

// end kills the child and waits a moment for it to be gone; false if it is not.
func (p *process) end(wait time.Duration) bool {
	p.stdin.Close()
	if p.killedAt.IsZero() {
		p.killedAt = time.Now()
		if p.kill != nil {
			_ = p.kill(p.cmd.Process)
		} else {
			_ = p.cmd.Process.Kill() // an error means it is gone already
		}
	}
	select {
	case <-p.Done():
		return true
	case <-time.After(wait):
		return false
	}
}

// gone reports whether the child has ended.
func (p *process) gone() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// A tailWriter keeps the end of what is written to it.
type tailWriter struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 512

func (w *tailWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, b...)
	if len(w.buf) > tailBytes {
		w.buf = append(w.buf[:0], w.buf[len(w.buf)-tailBytes:]...)
	}
	return len(b), nil
}

// last is the last line written, printable.
func (w *tailWriter) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.TrimSpace(string(w.buf))
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 127 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
