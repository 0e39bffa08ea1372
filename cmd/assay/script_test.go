package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/api/apitest"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// epoch is when the stories take place.
var epoch = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		// The program itself, with the stories' clock.
		"assay": func() { os.Exit(start(func() time.Time { return epoch })) },
	})
}

// TestScripts tells one story per verb against a real server on a unix socket. Each story has a fleet of its own:
// gpu001 to gpu012, of which gpu003 is quarantined, gpu005 suspect and gpu007 lost.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"event":  event,
			"tamper": tamper,
			"follow": follow,
			"ledger": ledger,
			"mute":   mute,
			"within": within,
		},
	})
}

type planeKey struct{}

func setup(env *testscript.Env) error {
	plane, err := apitest.New(func() time.Time { return epoch })
	if err != nil {
		return err
	}
	fill(plane)
	// A unix socket's path has about 100 bytes; the story's own directory may be deeper.
	dir, err := os.MkdirTemp("", "assay")
	if err != nil {
		return err
	}
	sock := filepath.Join(dir, "s")
	server := api.New(plane.Backend(), api.NewMetrics("test", plane.Snapshot), slog.New(slog.DiscardHandler))
	stop, err := plane.Open(context.Background(), sock, server)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	cfg, err := plane.CA.ServerTLS([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(ln, cfg) }()
	url := "https://" + ln.Addr().String()
	plane.SetURLs(url)
	env.Defer(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stop the story's server:", err)
		}
		<-served
		os.RemoveAll(dir)
	})
	env.Setenv("SOCK", sock)
	env.Setenv("URL", url)
	env.Setenv("TZ", "UTC")
	env.Values[planeKey{}] = plane
	return nil
}

func fill(p *apitest.Plane) {
	for i := 1; i <= 12; i++ {
		name := fmt.Sprintf("gpu%03d", i)
		p.Add(wire.Node{
			Name: name, State: "certified", Since: epoch.Add(-49 * time.Hour), GPUs: 8, Product: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", Leaf: "s1", BootID: "boot-" + name, LastSeen: epoch.Add(-4 * time.Second),
			Certificate: &certificate.Certificate{
				Serial: uint64(100 + i), Node: name, GPUs: []string{"GPU-" + name + "-0", "GPU-" + name + "-1"}, Level: checks.Quick, Tested: []string{"inventory", "ecc"},
				Suite: "5f3a", Driver: "550.54.15", BootID: "boot-" + name, IssuedAt: epoch.Add(-2 * time.Hour), Expires: epoch.Add(10 * time.Hour), GraceUntil: epoch.Add(22 * time.Hour), KeyID: "k1",
			},
		})
		links := int64(18)
		if i == 9 {
			links = 17
		}
		p.Shown = append(p.Shown, policy.Shown{Node: name, SKU: "NVIDIA H100 80GB HBM3", Driver: "550.54.15", Values: map[string]int64{"inventory.count": 8, "nvlink.links": links}})
	}
	out := func(name, state, reason, owner, id string) wire.Node {
		return wire.Node{
			Name: name, State: state, Since: epoch.Add(-12 * time.Minute), Reasons: []string{reason}, Owner: owner, Case: id, GPUs: 8, Driver: "550.54.15", Leaf: "s1",
			BootID: "boot-" + name, LastSeen: epoch.Add(-3 * time.Second), Deadline: epoch.Add(33 * time.Minute),
		}
	}
	sick := out("gpu003", "quarantined", "xid 79 GPU 3 off the bus", "assay", "Q-7F3K")
	sick.Slurm = &wire.SlurmNode{State: "IDLE+DRAIN", Reason: "assay:Q-7F3K xid 79 GPU 3 off the bus", ReasonUser: "root", ReasonTime: epoch.Add(-12 * time.Minute)}
	sick.Effects = []wire.Effect{{ID: "e17", Node: "gpu003", Kind: "reboot", Created: epoch.Add(-2 * time.Minute)}}
	soft := out("gpu005", "suspect", "rowremap 11 rows remapped, limit 10\x1b[2J", "assay", "Q-8M2A")
	soft.Marks = []string{"held_back"}
	soft.Slurm = &wire.SlurmNode{State: "ALLOCATED", Jobs: []string{"4713"}}
	lost := out("gpu007", "certified", "", "", "")
	lost.Lost, lost.Reasons, lost.Since, lost.Deadline = true, nil, epoch.Add(-49*time.Hour), time.Time{}
	lost.Holds = []wire.Hold{{Owner: "alice", Reason: "board swap", Expires: epoch.Add(48 * time.Hour)}}
	p.Add(sick, soft, lost)
	three := 3
	p.AddCase(wire.Case{
		ID: "Q-7F3K", Node: "gpu003", Opened: epoch.Add(-12 * time.Minute), Cause: "xid 79", Part: "gpu/GPU-gpu003-3", Action: checks.Reboot, Level: checks.Standard, Owner: "assay",
		Next: "reboot, then a standard screen", Deadline: epoch.Add(33 * time.Minute), Before: []string{"4711", "4712"}, Attempts: []string{"evidence 2026-11-29T19:50:00Z done"},
		Findings: []checks.Finding{{Check: "xid", Code: 79, Subject: checks.Subject{Kind: checks.KindGPU, Node: "gpu003", GPUIndex: &three}, Verdict: checks.Fail, Action: checks.Reboot,
			Hard: true, Reason: "GPU has fallen off the bus", At: epoch.Add(-12 * time.Minute)}},
		Evidence: map[string]string{"kmsg": "9f86d081", "snapshot": "60303ae2"},
	})
	p.AddCase(wire.Case{ID: "Q-8M2A", Node: "gpu005", Opened: epoch.Add(-12 * time.Minute), Cause: "rowremap", Part: "gpu/GPU-gpu005-1", Action: checks.Drain, Level: checks.Quick, Owner: "assay", Next: "retest when idle"})
	p.AddCase(wire.Case{ID: "Q-1AAA", Node: "gpu001", Opened: epoch.Add(-72 * time.Hour), Closed: epoch.Add(-70 * time.Hour), Cause: "ecc", Outcome: "standard screen passed", Action: checks.ResetGPU, Level: checks.Standard, Owner: "assay", After: []string{"4711"}})
	for _, e := range []wire.HistoryEntry{
		{At: epoch.Add(-12 * time.Minute), Node: "gpu003", Event: "hard_fault check=xid code=79 gpu=3", From: "certified", To: "draining", Case: "Q-7F3K", By: "agent",
			Detail: []string{"write delete_certificate serial=103", "effect drain reason=\"assay:Q-7F3K xid 79 GPU 3 off the bus\""}},
		{At: epoch.Add(-11 * time.Minute), Node: "gpu003", Event: "jobs_changed jobs=", From: "draining", To: "quarantined", Case: "Q-7F3K", By: "slurm"},
		{At: epoch.Add(-10 * time.Minute), Node: "gpu005", Event: "soft_fault check=rowremap", From: "certified", To: "suspect", Case: "Q-8M2A", By: "agent"},
	} {
		p.Record(e)
	}
	p.SetGuard(wire.Guard{
		Schedulable: 12, HardHour: 1, HeldBack: []string{"gpu005", "gpu006"}, Storms: []string{"rowremap on 3 of 12 nodes"},
		Budgets: []wire.Budget{{Scope: "fleet hour", Spent: 1, Limit: 1, Until: epoch.Add(48 * time.Minute)}, {Scope: "fleet day", Spent: 1, Limit: 1}},
	})
}

func planeOf(ts *testscript.TestScript) *apitest.Plane { return ts.Value(planeKey{}).(*apitest.Plane) }

// event records a history entry, given as JSON; "event leader URL" makes the plane follow another.
func event(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 2 && args[0] == "leader" {
		planeOf(ts).Follow(args[1])
		return
	}
	var e wire.HistoryEntry
	ts.Check(json.Unmarshal([]byte(strings.Join(args, " ")), &e))
	planeOf(ts).Record(e)
}

// tamper changes the author of the first history entry behind everybody's back.
func tamper(ts *testscript.TestScript, _ bool, args []string) { planeOf(ts).Tamper(0, args[0]) }

// follow waits until a background command's output file holds a text: follow FILE TEXT.
func follow(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		data, _ := os.ReadFile(ts.MkAbs(args[0])) // not there yet
		if strings.Contains(string(data), args[1]) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("%s never held %q", args[0], args[1])
}

// ledger serves the parts of this story's fleet on a socket: ledger SOCKET.
func ledger(ts *testscript.TestScript, _ bool, args []string) {
	part := rma.Part{Serial: "1653921004711", Product: "NVIDIA H100 80GB HBM3", Places: []rma.Place{{Node: "gpu003", Slot: "0000:3b:00.0", Since: epoch}}}
	ticket := rma.Ticket{ID: "R-4M2K", Node: "gpu003", Cause: "rowremap", State: rma.Shipped}
	mux := http.NewServeMux()
	mux.HandleFunc(wire.PathParts, func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode([]rma.Part{part}) })
	mux.HandleFunc(wire.PathRMA, func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode([]rma.Ticket{ticket}) })
	serveOn(ts, args[0], mux)
}

// mute is a control plane that takes calls and never answers: mute SOCKET.
func mute(ts *testscript.TestScript, _ bool, args []string) {
	serveOn(ts, args[0], http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
}

func serveOn(ts *testscript.TestScript, socket string, h http.Handler) {
	dir, err := os.MkdirTemp("", "assay") // a socket's path is short
	ts.Check(err)
	ln, err := net.Listen("unix", filepath.Join(dir, "s"))
	ts.Check(err)
	ts.Check(os.Symlink(dir, ts.MkAbs(socket)))
	srv := &http.Server{Handler: h}
	go srv.Serve(ln)
	ts.Defer(func() { srv.Close(); os.RemoveAll(dir) })
}

// within runs a command that must end in time: within DURATION PROGRAM ARG…
func within(ts *testscript.TestScript, _ bool, args []string) {
	most, err := time.ParseDuration(args[0])
	ts.Check(err)
	begun := time.Now()
	ts.Check(ts.Exec(args[1], args[2:]...))
	if took := time.Since(begun); took > most {
		ts.Fatalf("took %s of %s", took, most)
	}
}
