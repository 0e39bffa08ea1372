package port

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/strike"
)

// The stories: looks at the ports of one node over time. Each line of input is one look, the time and then each port that
// sysfs shows, name@address where that is not of itself, with what is said of it: up, down, off, rate=N or a counter. What follows is what is found wrong, if anything.
// Between two looks the agent restarts: all that is remembered goes through its JSON form.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		book, learned := strike.NewBook("boot"), map[string]Learned{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p := limits()
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "count":
					a.Scan(t, 0, &p.Count)
				case "require":
					var rate int
					a.Scan(t, 0, &rate)
					p.Require = map[string]int{"*": rate}
				case "strikes":
					l := p.Counters["link_downed"]
					a.Scan(t, 0, &l.Strikes)
					p.Counters["link_downed"] = l
				}
			}
			switch d.Cmd {
			case "boot":
				book = book.Of(d.Pos)
				return ""
			case "clear":
				for _, a := range d.CmdArgs {
					if !book.Clear(Infiniband + " " + Port{PCI: "0000:0" + a.Key[5:6] + ":00.0", Name: a.Key}.Subject().Key()) {
						return "nothing was known of " + a.Key
					}
				}
				return ""
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				at, ports := parseLook(t, strings.TrimSpace(line))
				restart(t, book, &book)
				restart(t, learned, &learned)
				r := Track(book, learned, Infiniband, at, Reading{Have: checks.Read, Ports: ports}, p)
				fmt.Fprintf(&out, "%s:", at)
				for _, f := range Judge(Infiniband, r, p) {
					if f.Verdict != checks.Pass || f.Action != checks.None {
						fmt.Fprintf(&out, " [%s %s %s, %s]", f.Subject.Port, f.Verdict, f.Action, f.Reason)
					}
				}
				out.WriteString("\n")
			}
			return out.String()
		})
	})
}

func restart(t *testing.T, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

func parseLook(t *testing.T, line string) (time.Duration, []Port) {
	t.Helper()
	words := strings.Fields(line)
	at, err := time.ParseDuration(words[0])
	if err != nil {
		t.Fatal(err)
	}
	var ports []Port
	for _, w := range words[1:] {
		key, value, isPair := strings.Cut(w, "=")
		n, _ := strconv.ParseUint(value, 10, 64)
		switch {
		case strings.HasPrefix(w, "mlx"), strings.HasPrefix(w, "roce"):
			name, pci, given := strings.Cut(w, "@")
			if !given {
				pci = "0000:0" + name[5:6] + ":00.0"
			}
			ports = append(ports, Port{Name: name, PCI: pci, Counters: map[string]uint64{}})
			continue
		case len(ports) == 0:
			t.Fatalf("%q: name the port first", line)
		}
		x := &ports[len(ports)-1]
		switch {
		case w == "up":
			x.Up, x.State, x.Rate = true, "ACTIVE LinkUp", 400
		case w == "down":
			x.State = "DOWN Polling"
		case w == "off":
			x.Disabled, x.State = true, "DOWN Disabled"
		case key == "rate":
			x.Rate = int(n)
		case isPair:
			x.Counters[key] = n
		default:
			t.Fatalf("%q: no word %q", line, w)
		}
	}
	return at, ports
}
