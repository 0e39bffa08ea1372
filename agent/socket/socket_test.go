package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent"
)

// fakeAgent answers hooks with what it was asked.
type fakeAgent struct {
	mu    sync.Mutex
	asked []agent.HookRequest
	reply agent.Reply
}

func (a *fakeAgent) Hook(_ context.Context, r agent.HookRequest) agent.Reply {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r)
	return a.reply
}

func (a *fakeAgent) Status(context.Context) (agent.Status, error) {
	return agent.Status{Node: "n1", State: "certified"}, nil
}

// listen serves an agent until the test ends.
func listen(t *testing.T, a Agent) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n1.sock")
	s, err := Listen(path, a, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return path
}

func TestAskAndAnswer(t *testing.T) {
	a := &fakeAgent{reply: agent.Reply{Exit: 1, Message: "assay:Q-7F3K xid 79\nGPU 3"}}
	path := listen(t, a)
	exit, text, err := Ask(t.Context(), path, "prolog", map[string]string{
		"SLURM_JOB_ID": "42", "SLURM_JOB_GPUS": "0-1", "SLURM_JOB_USER": "ann", "SLURM_JOB_NUM_NODES": "4", "SLURM_RESTART_COUNT": "1",
	})
	if err != nil || exit != 1 || text != "assay:Q-7F3K xid 79 GPU 3\n" {
		t.Fatalf("exit %d, text %q, %v", exit, text, err)
	}
	r := a.asked[0]
	if r.Hook != agent.Prolog || r.Job.ID != "42" || r.Job.User != "ann" || r.Job.Nodes != 4 || r.Job.Restarts != 1 || fmt.Sprint(r.GPUs.Indices) != "[0 1]" {
		t.Fatalf("asked %+v", r)
	}
	_, text, err = Ask(t.Context(), path, "status", nil)
	var st agent.Status
	if err != nil || json.Unmarshal([]byte(text), &st) != nil || st.Node != "n1" {
		t.Fatalf("status %q, %v", text, err)
	}
}

func TestTheSocketIsRootsAlone(t *testing.T) {
	path := listen(t, &fakeAgent{})
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", st.Mode(), err)
	}
}

func TestASecondAgentDoesNotTakeTheSocket(t *testing.T) {
	a := &fakeAgent{}
	path := listen(t, a)
	if _, err := Listen(path, a, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrInUse) {
		t.Fatalf("second Listen: %v", err)
	}
	if exit, _, err := Ask(t.Context(), path, "healthcheck", nil); err != nil || exit != 0 {
		t.Fatalf("after that: %d, %v", exit, err)
	}
}

func TestADeadAgentsSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close() // as kill -9 leaves it
	s, err := Listen(path, &fakeAgent{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestMalformedRequests(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct{ name, request string }{
		{"empty", ""},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n"},
		{"unknown word", "ASSAY1 reboot\n\n"},
		{"cut off", "ASSAY1 prolog\nSLURM_JOB_ID=1\n"},
		{"a line without end", "ASSAY1 prolog\nSLURM_JOB_ID=" + long},
		{"far too much", "ASSAY1 prolog\n" + strings.Repeat("SLURM_JOB_ID=1\n", maxRequest/10)},
	} {
		if verb, _, err := Read(strings.NewReader(c.request)); err == nil {
			t.Errorf("%s: read as %q", c.name, verb)
		}
	}
	// A client that says nothing is dropped; others are served meanwhile.
	path := listen(t, &fakeAgent{})
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, _, err := Ask(t.Context(), path, "healthcheck", nil); err != nil {
		t.Fatal(err)
	}
	_ = silent.SetReadDeadline(time.Now().Add(2 * readTimeout))
	if n, err := silent.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("the silent client got %d bytes, %v", n, err)
	}
}

func TestUnknownNamesAndJunkValuesAreLeftOut(t *testing.T) {
	verb, env, err := Read(strings.NewReader("ASSAY1 prolog\nLD_PRELOAD=/tmp/x.so\nSLURM_JOB_ID=7\nno equals sign\nSLURM_JOB_GPUS=0=1\n\n"))
	if err != nil || verb != "prolog" || len(env) != 2 || env["SLURM_JOB_ID"] != "7" || env["SLURM_JOB_GPUS"] != "0=1" {
		t.Fatalf("%q %v %v", verb, env, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("ASSAY1 prolog\nSLURM_JOB_ID=7\nSLURM_JOB_GPUS=0-3,7\nCUDA_VISIBLE_DEVICES=MIG-GPU-abc/1/0\n\n"))
	f.Add([]byte("ASSAY1 status\n\n"))
	f.Add([]byte("ASSAY1 epilog\nSLURM_JOB_GPUS=\xff\x00\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		verb, env, err := Read(strings.NewReader(string(data)))
		if err != nil {
			return
		}
		r := agent.NewHookRequest(agent.Hook(verb), env)
		if len(r.Job.ID) > 20 || strings.ContainsAny(r.Job.User, " \n/;'\"") || len(r.GPUs.Indices) > 256 {
			t.Fatalf("let through: %+v", r)
		}
	})
}

// BenchmarkFastPath is one hook's request and answer, both ends counted.
func BenchmarkFastPath(b *testing.B) {
	path := filepath.Join(b.TempDir(), "n1.sock")
	s, err := Listen(path, &fakeAgent{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = s.Serve(ctx) }()
	env := map[string]string{"SLURM_JOB_ID": "42", "SLURM_JOB_GPUS": "0-7"}
	for b.Loop() {
		if _, _, err := Ask(ctx, path, "prolog", env); err != nil {
			b.Fatal(err)
		}
	}
}
