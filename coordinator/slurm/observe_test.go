package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestObserve runs testdata/observe. In each file a node is seen again and again:
//
//	record [ours=REASON] [by-us] [foreign=USER] [since=SECONDS]   what we know of our own doing
//	see at=SECONDS state=STATE [reason=TEXT] [user=USER] [jobs=(1,2)] [boot=SECONDS]
//	new-leader                                                    forget the view before
func TestObserve(t *testing.T) {
	start := utc("2026-03-02T10:00:00")
	datadriven.Walk(t, "testdata/observe", func(t *testing.T, path string) {
		var rec Record
		var prev *View
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			at := func(key string) time.Time {
				s := arg(d, key)
				if s == "" {
					return time.Time{}
				}
				n, err := strconv.Atoi(s)
				if err != nil {
					d.Fatalf(t, "%s=%s", key, s)
				}
				return start.Add(time.Duration(n) * time.Second)
			}
			switch d.Cmd {
			case "record":
				rec = Record{DrainedByUs: d.HasArg("by-us"), Reason: arg(d, "ours"), Foreign: arg(d, "foreign"), Since: at("since")}
				return ""
			case "new-leader":
				prev = nil
				return ""
			case "see":
				v := View{At: at("at"), Node: Node{Name: "gpu1", Reason: arg(d, "reason"), ReasonUser: arg(d, "user"), BootTime: at("boot")}}
				v.Node.State, v.Node.Flags = ParseState(arg(d, "state"))
				for id := range strings.FieldsSeq(arg(d, "jobs")) {
					v.Jobs = append(v.Jobs, Job{ID: id, State: "RUNNING", Nodes: []string{"gpu1"}})
				}
				seen := Observe(prev, v, rec)
				prev = &v
				return text(seen)
			}
			d.Fatalf(t, "unknown command %q", d.Cmd)
			return ""
		})
	})
}

// arg joins an argument's values with spaces: reason=(Prolog,error) is "Prolog error".
func arg(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, " ")
		}
	}
	return ""
}

func text(seen []Observation) string {
	if len(seen) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for _, o := range seen {
		fmt.Fprint(&b, o.Kind)
		if o.User != "" {
			fmt.Fprintf(&b, " user=%s", o.User)
		}
		if o.Reason != "" {
			fmt.Fprintf(&b, " reason=%q", o.Reason)
		}
		if o.BySlurm {
			b.WriteString(" by-slurm")
		}
		if len(o.Jobs) > 0 {
			fmt.Fprintf(&b, " jobs=%s", strings.Join(ids(o.Jobs), ","))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
