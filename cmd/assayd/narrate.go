package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// A narrator tells the demo on standard output.
type narrator struct {
	start  time.Time
	colour bool
}

func (n *narrator) paint(code, s string) string {
	if !n.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// say tells one thing, with the seconds since the start.
func (n *narrator) say(format string, args ...any) {
	fmt.Printf("%s %s\n", n.paint("36", fmt.Sprintf("%5.1fs", time.Since(n.start).Seconds())), fmt.Sprintf(format, args...))
}

func (n *narrator) command(line string) { fmt.Println("       " + n.paint("1", "$ "+line)) }

func (n *narrator) show(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Print("       ", line)
	}
}

// transition tells how a node went from one state to the next, and what was done with it.
func (n *narrator) transition(e wire.HistoryEntry) {
	to := e.To
	switch to {
	case "certified":
		to = n.paint("32", to)
	case "draining", "quarantined", "withheld":
		to = n.paint("31", to)
	default:
		to = n.paint("33", to)
	}
	event, _, _ := strings.Cut(e.Event, " reason=")
	if len(event) > 90 {
		event = event[:90] + "…"
	}
	n.say("%s  %s → %s  (%s)", n.paint("1", e.Node), e.From, to, event)
	for _, line := range e.Detail {
		if len(line) > 130 {
			line = line[:130] + "…"
		}
		fmt.Println("           " + n.paint("2", line))
	}
}

func (d *demonstration) history(ctx context.Context, node string) ([]wire.HistoryEntry, error) {
	out, err := d.lab.CLI(ctx, "node", "history", node, "-o", "json")
	if err != nil {
		return nil, err
	}
	var h []wire.HistoryEntry
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		return nil, fmt.Errorf("history of %s: %w", node, err)
	}
	return h, nil
}

// sim changes a node's simulated hardware with the command that anyone would use.
func (d *demonstration) sim(ctx context.Context, verb, node string, args ...string) error {
	full := append([]string{"sim", verb, "--dir", d.lab.Hardware(node)}, args...)
	d.command("assay-agent sim " + verb + " --dir …/" + node + " " + strings.Join(args, " "))
	out, err := exec.CommandContext(ctx, d.lab.Bin("assay-agent"), full...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("assay-agent sim %s %s: %w: %s", verb, node, err, out)
	}
	return nil
}
