// Command assay is the command line for operators and researchers. It uses the control plane's API only: over the unix
// socket of a control host, or over TLS with an operator's certificate from anywhere.
//
// Results go to stdout, everything else to stderr. Exit status: 0 done or healthy, 1 a fault found or refused, 2
// unknown, 64 usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/assay-gpu/assay/cmd/internal/faults"
	"github.com/assay-gpu/assay/coordinator/client"
)

// version is set by the linker.
var version = "devel"

// Exit statuses.
const (
	exitDone    = 0
	exitFault   = 1  // a fault found, or the order refused
	exitUnknown = 2  // no answer, or one that says nothing
	exitUsage   = 64 // EX_USAGE: the command line or a file it names
)

func main() { os.Exit(start(time.Now)) }

// start runs the program on the process's own streams, until it ends or is interrupted.
func start(now func() time.Time) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, now)
}

// run is the whole program, with its world as arguments.
func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, now func() time.Time) int {
	a := &app{in: in, out: out, err: errw, now: now}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if !a.running { // cobra refused the command line before anything ran
		err = &usageError{faults.CommandLine(cmd, args, err, a.checkFlags).Error(), "see " + cmd.CommandPath() + " --help"}
	}
	return a.report(err)
}

// A usageError is a mistake in the command line or in a file it names.
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }
func (e *usageError) Hint() string  { return e.hint }

// A refusal is an order this program itself will not pass on.
type refusal struct{ what, hint string }

func (e *refusal) Error() string { return e.what }
func (e *refusal) Hint() string  { return e.hint }

// errFault means that the answer on stdout tells of a fault: there is nothing more to say.
var errFault = errors.New("fault found")

// report says what went wrong, then what to do, and returns the exit status.
func (a *app) report(err error) int {
	code := exitOf(err)
	if errors.Is(err, errFault) {
		return code
	}
	fmt.Fprintf(a.err, "assay: %s\n", cleanLines(err.Error()))
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		fmt.Fprintf(a.err, "hint: %s\n", cleanLines(h.Hint()))
	}
	return code
}

func exitOf(err error) int {
	var usage *usageError
	var refused *refusal
	var answer *client.Error
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errFault), errors.As(err, &refused):
		return exitFault
	case errors.As(err, &answer):
		switch s := answer.Status(); {
		case s == 400, s == 413:
			return exitUsage
		case s == 421, s == 429, s >= 500:
			return exitUnknown // it was not decided; it may be tried again
		}
		return exitFault
	}
	return exitUnknown
}
