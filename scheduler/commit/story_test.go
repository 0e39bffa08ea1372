package commit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/scheduler"
)

// TestStories tells what becomes of a launch. Nodes a, b and c hold certificates 1, 2 and 3. A line is "NODE ready [on N]",
// "NODE running", "NODE refused|dropped|lost WHY", "NODE exit N", "NODE gone", "NODE revoked", "cancel WHY" or "+DURATION".
func TestStories(t *testing.T) {
	datadriven.RunTest(t, "testdata/stories", func(t *testing.T, d *datadriven.TestData) string {
		start := time.Unix(1_800_000_000, 0).UTC()
		now, nodes := start, []string{"a", "b", "c"}
		var limit time.Duration
		for _, arg := range d.CmdArgs {
			switch arg.Key {
			case "limit":
				limit, _ = time.ParseDuration(arg.Vals[0])
			case "nodes":
				nodes = arg.Vals
			}
		}
		var seats []Seat
		for i, n := range nodes {
			seats = append(seats, Seat{Node: n, GPUs: 0xff, Serial: uint64(i + 1)})
		}
		l := Begin("7.1", 7, scheduler.Gang{Limit: limit}, seats, now)
		words, gone, revoked := map[string]Word{}, map[string]bool{}, map[string]bool{}
		v := View{
			Word: func(n string) Word { return words[n] },
			Gone: func(n string) bool { return gone[n] },
			Hold: func(s Seat) (bool, string) { return !revoked[s.Node], "revoked" },
		}
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			who, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			what, why, _ := strings.Cut(rest, " ")
			before := l
			switch {
			case strings.HasPrefix(who, "+"):
				step, err := time.ParseDuration(who[1:])
				if err != nil {
					t.Fatal(err)
				}
				now = now.Add(step)
			case who == "cancel":
				l = l.Cancel(rest, now)
			case what == "ready":
				w := Word{Said: Ready, Serial: uint64(who[0]-'a') + 1}
				if _, err := fmt.Sscanf(why, "on %d", &w.Serial); why != "" && err != nil {
					t.Fatal(err)
				}
				words[who] = w
			case what == "running":
				words[who] = Word{Said: Running}
			case what == "refused":
				words[who] = Word{Said: Refused, Why: why}
			case what == "dropped":
				words[who] = Word{Said: Exited, Why: why}
			case what == "lost":
				words[who] = Word{Said: Exited, Lost: true, Why: why}
			case what == "exit":
				w := Word{Said: Exited}
				fmt.Sscan(why, &w.Exit)
				words[who] = w
			case what == "gone":
				gone[who] = true
			case what == "revoked":
				revoked[who] = true
			default:
				t.Fatalf("%s: %q is no line of a story", d.Pos, line)
			}
			next, over := Step(l, v, now)
			if again, o := Step(next, v, now); !over && (fmt.Sprint(again) != fmt.Sprint(next) || o) && next.Phase == before.Phase {
				t.Errorf("%s: asked twice, it answers %v and %v", d.Pos, next, again)
			}
			l = next
			if l.Phase != before.Phase || l.Outcome != before.Outcome || over {
				fmt.Fprintf(&out, "%s:", strings.TrimSpace(line))
				if l.Phase != before.Phase {
					fmt.Fprintf(&out, " %s", l.Phase)
				}
				if l.Outcome != before.Outcome {
					fmt.Fprintf(&out, " %s", l.Outcome)
					if l.Blame != "" {
						fmt.Fprintf(&out, " blame=%s", l.Blame)
					}
					if l.Why != "" {
						fmt.Fprintf(&out, " (%s)", l.Why)
					}
				}
				if over {
					out.WriteString(", over")
				}
				out.WriteString("\n")
			}
			if over {
				break
			}
		}
		if out.Len() == 0 {
			return "no change\n"
		}
		return out.String()
	})
}
