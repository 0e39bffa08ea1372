package main

import (
	"debug/elf"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call the program by any of its names; it finds its sockets and files under $WORK.
func TestMain(m *testing.M) {
	program := func() {
		runDir, etcDir = os.Getenv("WORK")+"/run", os.Getenv("WORK")+"/etc"
		main()
	}
	testscript.Main(m, map[string]func(){
		"assay-hook": program, "prolog": program, "epilog": program, "healthcheck": program, "00-assay-prolog": program, "oddname": program,
	})
}

// TestScript runs testdata/script. The command "agent NAME ANSWER" has an agent listen on run/NAME.sock that keeps what
// it was asked in asked; "date VAR OFFSET" sets VAR to a time that much from now.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) {
			return cond == "root" && os.Geteuid() == 0, nil
		},
		Setup: func(env *testscript.Env) error {
			for _, dir := range []string{"run", "etc"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			for _, e := range os.Environ() {
				if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "SLURM") || strings.HasPrefix(name, "CUDA") {
					env.Setenv(name, "")
				}
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"agent": func(ts *testscript.TestScript, neg bool, args []string) {
				l, err := net.Listen("unix", ts.MkAbs("run/"+args[0]+".sock"))
				ts.Check(err)
				ts.Defer(func() { l.Close() })
				answer := strings.NewReplacer(`\n`, "\n", `\e`, "\x1b").Replace(args[1])
				asked := ts.MkAbs("asked")
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						req := make([]byte, 64<<10)
						n := 0
						for !strings.HasSuffix(string(req[:n]), "\n\n") {
							m, err := c.Read(req[n:])
							if err != nil {
								break
							}
							n += m
						}
						os.WriteFile(asked, req[:n], 0o600)
						c.Write([]byte(answer))
						c.Close()
					}
				}()
			},
			"date": func(ts *testscript.TestScript, neg bool, args []string) {
				d, err := time.ParseDuration(args[1])
				ts.Check(err)
				ts.Setenv(args[0], time.Now().Add(d).UTC().Format(time.RFC3339))
			},
			"subst": func(ts *testscript.TestScript, neg bool, args []string) {
				for _, name := range args {
					file := ts.MkAbs(name)
					text := os.Expand(ts.ReadFile(name), ts.Getenv)
					ts.Check(os.WriteFile(file, []byte(text), 0o644))
				}
			},
		},
	})
}

// build makes the program as the Makefile does, with its directories under dir.
func build(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "assay-hook")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.runDir="+dir+" -X main.etcDir="+dir, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// The real program needs no library of the node, and no script interpreter.
func TestBinaryIsStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	f, err := elf.Open(build(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a %v segment: it is not static", p.Type)
		}
	}
}

// Against an agent that never answers the real program gives up within its budget of 20 s, and passes. Slurm's SIGTERM
// ends it at once.
func TestBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 19 s")
	}
	t.Parallel()
	dir := t.TempDir()
	binary := build(t, dir)
	l, err := net.Listen("unix", filepath.Join(dir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	killed := exec.Command(binary, "prolog")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close() // it asks nobody again: one answer, one verdict
	if err := killed.Wait(); err != nil {
		t.Errorf("agent closed: %v, want exit 0", err)
	}

	start := time.Now()
	killed = exec.Command(binary, "prolog")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	if conn, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := killed.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	killed.Wait()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v to die of SIGTERM", took)
	}

	start = time.Now()
	out, err := exec.Command(binary, "prolog").CombinedOutput()
	took := time.Since(start)
	if err != nil || !strings.Contains(string(out), "no answer in time") {
		t.Errorf("hung agent: %v, %q", err, out)
	}
	if took < 18*time.Second || took > 19700*time.Millisecond {
		t.Errorf("waited %v, want 19 s", took)
	}
}

// A full pipe that nobody reads, or none at all, changes neither the verdict nor the time.
func TestStderrNobodyReads(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	binary := build(t, dir)
	socket := agent(t, says("1\n"+strings.Repeat("reason ", 400)))
	if err := os.Rename(socket, filepath.Join(dir, "agent.sock")); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for n := 0; n < 1<<20; {
		m, err := w.Write(make([]byte, 4096))
		if n += m; err != nil {
			break
		}
	}
	for name, stderr := range map[string]*os.File{"full": w, "closed": nil} {
		cmd := exec.Command(binary, "prolog")
		if stderr != nil {
			cmd.Stderr = stderr
		} else {
			cmd = exec.Command("/bin/sh", "-c", `exec "$0" prolog 2>&-`, binary)
		}
		start := time.Now()
		err := cmd.Run()
		if took := time.Since(start); cmd.ProcessState.ExitCode() != 1 || took > 5*time.Second {
			t.Errorf("%s pipe: %v after %v, want exit 1", name, err, took)
		}
	}
}
