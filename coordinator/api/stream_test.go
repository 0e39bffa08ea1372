package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// stream opens a stream and returns a reader of its lines; the test's end closes it.
func stream(t *testing.T, c *http.Client, url string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("stream: %d %s", resp.StatusCode, body)
	}
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 1<<20)
	return sc
}

// nextLine reads the next line that is no keepalive into v; false at the stream's end.
func nextLine(t *testing.T, sc *bufio.Scanner, v any) bool {
	t.Helper()
	for sc.Scan() {
		if len(sc.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(sc.Bytes(), v); err != nil {
			t.Fatalf("line %q: %v", sc.Text(), err)
		}
		return true
	}
	return false
}

func TestStreamSendsWholeStateAtOnceAndOnChange(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "enrolled"}, wire.Node{Name: "gpu002", State: "enrolled"})
	sc := stream(t, r.as(t, authority.Node, "gpu001"), r.url+wire.PathStream)
	var d wire.Desired
	if !nextLine(t, sc, &d) || d.Node != "gpu001" || d.State != "enrolled" || d.Version == 0 || d.Policy.Agent.Interval == 0 {
		t.Fatalf("first state: %+v", d)
	}
	first := d.Version
	r.plane.Add(wire.Node{Name: "gpu002", State: "certified"}) // another node's change is no news
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	start := time.Now()
	if !nextLine(t, sc, &d) || d.Node != "gpu001" || d.State != "certified" || d.Version <= first {
		t.Fatalf("after the change: %+v", d)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the change took %s to arrive", took)
	}
}

func TestStreamEndsWithLeadershipAndWithASecondStream(t *testing.T) {
	r := newRig(t)
	r.plane.Add(wire.Node{Name: "gpu001", State: "enrolled"})
	node := r.as(t, authority.Node, "gpu001")
	var d wire.Desired
	old := stream(t, node, r.url+wire.PathStream)
	nextLine(t, old, &d)
	fresh := stream(t, node, r.url+wire.PathStream)
	nextLine(t, fresh, &d)
	if nextLine(t, old, &d) {
		t.Error("the first stream went on after a second came")
	}
	if got := metric(t, r, "assay_agents_connected"); got != "1" {
		t.Errorf("assay_agents_connected %s, want 1", got)
	}
	r.plane.Follow("https://control2:7420")
	if nextLine(t, fresh, &d) {
		t.Error("the stream went on without leadership")
	}
	r.plane.Follow("")
	last := stream(t, node, r.url+wire.PathStream)
	nextLine(t, last, &d)
	r.server.Resign()
	if nextLine(t, last, &d) {
		t.Error("the stream went on after Resign")
	}
}

func TestStreamOfAnUnknownNode(t *testing.T) {
	r := newRig(t)
	status, body, h := do(t, r.as(t, authority.Node, "gpu009"), "GET", r.url+wire.PathStream, nil)
	wantProblem(t, "a node that was removed", 404, status, body, h)
}

func TestEvents(t *testing.T) {
	r := newRig(t)
	alice := r.as(t, authority.Operator, "alice")
	for i := range 1203 {
		r.plane.Record(wire.HistoryEntry{Node: "gpu001", Event: fmt.Sprint("e", i)})
	}
	read := func(query string) (events []string) {
		_, body, _ := do(t, alice, "GET", r.url+wire.PathEvents+query, nil)
		for line := range strings.Lines(string(body)) {
			var e wire.HistoryEntry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			events = append(events, e.Event)
		}
		return events
	}
	if es := read(""); len(es) != 1203 || es[0] != "e0" || es[1202] != "e1202" {
		t.Errorf("all: %d entries", len(es))
	}
	if es := read("?after=00000000000004b1"); strings.Join(es, " ") != "e1201 e1202" {
		t.Errorf("after a cursor: %v", es)
	}
	if es := read("?last=2"); strings.Join(es, " ") != "e1201 e1202" {
		t.Errorf("last two: %v", es)
	}
	if es := read("?last=0"); len(es) != 0 {
		t.Errorf("last none: %v", es)
	}
	r.plane.Record(wire.HistoryEntry{Node: "gpu002", Event: "other"})
	if es := read("?last=2&nodes=gpu%5B001,003%5D"); strings.Join(es, " ") != "e1201 e1202" {
		t.Errorf("last two of some nodes: %v", es)
	}
	status, body, h := do(t, alice, "GET", r.url+wire.PathEvents+"?last=1&nodes=gpu%5B1-", nil)
	wantProblem(t, "a bad hostlist", 400, status, body, h)
	status, body, h = do(t, alice, "GET", r.url+wire.PathEvents+"?nodes=gpu001", nil)
	wantProblem(t, "nodes without last", 400, status, body, h)
	status, body, h = do(t, alice, "GET", r.url+wire.PathEvents+"?after=gone", nil)
	wantProblem(t, "a cursor that is gone", 410, status, body, h)

	sc := stream(t, alice, r.url+wire.PathEvents+"?last=1&follow=true")
	var e wire.HistoryEntry
	if !nextLine(t, sc, &e) || e.Event != "other" {
		t.Fatalf("following begins with %+v", e)
	}
	r.plane.Record(wire.HistoryEntry{Event: "news"})
	if !nextLine(t, sc, &e) || e.Event != "news" {
		t.Fatalf("following goes on with %+v", e)
	}
}

// metric reads one sample from /metrics.
func metric(t *testing.T, r *rig, name string) string {
	t.Helper()
	_, body, _ := do(t, r.as(t, authority.Nobody, "x"), "GET", r.url+"/metrics", nil)
	for line := range strings.Lines(string(body)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return v
		}
	}
	return ""
}
