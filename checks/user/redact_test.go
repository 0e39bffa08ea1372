package user

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/policy"
)

// bones is a judgement without its words.
func bones(u policy.UserCheck, o Outcome) string {
	var out []string
	for _, f := range Judge("n", "x", u, o) {
		out = append(out, fmt.Sprintf("%s %s %s %d %d", f.Subject.Key(), f.Verdict, f.Action, f.Code, f.Count))
	}
	return strings.Join(out, "\n")
}

func TestRedact(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		o            Outcome
		want         Outcome
	}{
		{"a plugin's line", "", Outcome{Exit: 2, Stdout: "/home/ann is full|used=9\nmore", Stderr: "ann"}, Outcome{Exit: 2, Stdout: "redacted\n", Stderr: "redacted"}},
		{"a plugin that says nothing", "", Outcome{Exit: 2, Stdout: " |ann=1", Stderr: " \n"}, Outcome{Exit: 2, Stderr: " \n"}},
		{"it could not be run", "exit", Outcome{Exit: -1, Err: "no user ann"}, Outcome{Exit: -1, Err: "redacted"}},
		{"findings", "json", Outcome{Stdout: `{"verdict":"fail","reason":"ann","evidence":"ann","by":"ann","code":3,"count":2,"subject":{"kind":"gpu","gpu_index":1}}` + "\n\nann\n" + `{"verdict":"pass"}`},
			Outcome{Stdout: `{"verdict":"fail","action":"drain","code":3,"reason":"redacted","evidence":"redacted","count":2,"subject":{"kind":"gpu","gpu_index":1}}` + "\nredacted\n" +
				`{"verdict":"pass","action":"none","code":0,"reason":"redacted","evidence":"","count":0,"subject":null}` + "\n"}},
		{"how it ended stays", "json", Outcome{TimedOut: true, Signal: "killed", Cut: true, Stuck: true}, Outcome{TimedOut: true, Signal: "killed", Cut: true, Stuck: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := policy.UserCheck{Format: tt.format}
			got := Redact(u, tt.o)
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if a, b := bones(u, tt.o), bones(u, got); a != b {
				t.Errorf("judged\n%s\nredacted\n%s", a, b)
			}
		})
	}
}
