package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/agent/socket"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/sdc"
	"github.com/assay-gpu/assay/golden"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"assay-agent": func() {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			os.Exit(execute(ctx, os.Args[1:]))
		},
		"dcgmi": func() { os.Exit(sim.Dcgmi(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts tells one story per file, on simulated hardware: $HW is a node of eight healthy GPUs, $RUN and $STATE the
// daemon's folders.
func TestScripts(t *testing.T) {
	lib := library(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			if cond == "race" { // the simulated CUDA driver does not run under the race detector
				return raceEnabled, nil
			}
			return false, fmt.Errorf("%s: no such condition", cond)
		},
		Setup: func(env *testscript.Env) error { return setup(env, lib) },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"hook":       hook,
			"eventually": eventually,
			"status":     status,
			"screened":   screened,
			"redacted":   redacted,
		},
	})
}

// library builds the simulated NVML.
func library(t *testing.T) string {
	lib := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	if err := nvmllib.Build(lib); err != nil {
		t.Fatal(err)
	}
	return lib
}

func setup(env *testscript.Env, lib string) error {
	// A unix socket's path has about 100 bytes; the story's own folder may be deeper.
	dir, err := os.MkdirTemp("", "assay")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(dir) })
	samples, err := filepath.Abs("testdata/dcgm")
	if err != nil {
		return err
	}
	corpora, err := filepath.Abs("testdata/corpora")
	if err != nil {
		return err
	}
	for k, v := range map[string]string{"DCGM": samples, "CORPORA": corpora, "LIB": lib, "HW": dir + "/hw", "RUN": dir + "/run", "STATE": dir + "/state", "SLURMD_NODENAME": "gpu001"} {
		env.Setenv(k, v)
	}
	return nil
}

// hook asks the agent on a socket as the hooks do: hook SOCKET prolog NAME=VALUE… Its exit status is the hook's.
func hook(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: hook SOCKET WORD NAME=VALUE…")
	}
	vars := map[string]string{}
	for _, a := range args[2:] {
		k, v, _ := strings.Cut(a, "=")
		vars[k] = v
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	exit, text, err := socket.Ask(ctx, args[0], args[1], vars)
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if _, err := ts.Stdout().Write([]byte(text)); err != nil {
		ts.Fatalf("%v", err)
	}
	if (exit != 0) != neg {
		ts.Fatalf("the hook exits %d: %s", exit, text)
	}
}

// status runs a command and wants it to exit with a status: status N COMMAND ARGS…
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s exits with status %d, want %s", args[1], got, args[0])
	}
}

// eventually runs a command until it exits as wanted, for 10 s at most: [!] eventually COMMAND ARGS…
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); (err != nil) == neg {
			return
		}
	}
	ts.Fatalf("not within 10 s: %s: %v", strings.Join(args, " "), err)
}

// screened leaves in $STATE what an agent keeps of a screen of this boot: screened DIAG RESULTS, files of what dcgmi diag -r 2 wrote
// before it ended with status 226 and of what golden run --json printed.
func screened(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: screened DIAG RESULTS")
	}
	exit := 226
	read := catalog.Beside{
		Diag:   &catalog.DiagRead{At: time.Now().UTC(), Level: 2, Output: ts.ReadFile(args[0]), Exit: &exit},
		Golden: &catalog.GoldenRead{At: time.Now().UTC(), Results: map[string]sdc.Reading{}},
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	for d.More() {
		var r golden.Result
		ts.Check(d.Decode(&r))
		for _, g := range agent.KnownGPUs(ts.Getenv("STATE")) {
			if g.UUID == r.GPU.UUID {
				read.Golden.GPUs = append(read.Golden.GPUs, g)
				read.Golden.Results[g.UUID] = sdc.Reading{Have: checks.Read, Result: r}
			}
		}
	}
	boot, err := os.ReadFile(sim.In(ts.Getenv("HW")).BootID)
	ts.Check(err)
	ts.Check(atomicfile.WriteJSON(ts.Getenv("STATE")+"/screen.json", map[string]any{"boot_id": strings.TrimSpace(string(boot)), "read": read}))
}

// redacted redacts a capture into another folder: redacted FROM TO.
func redacted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: redacted FROM TO")
	}
	c, err := agent.ReadCapture(ts.MkAbs(args[0]))
	ts.Check(err)
	c, err = c.Redact([]byte("salt"))
	ts.Check(err)
	_, err = c.Write(ts.MkAbs(args[1]))
	ts.Check(err)
}
