package scheduler

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A question that was kept, as JSON, has the same answer: whatever the gang asks and wherever it may not go.
func TestAKeptQuestionIsAnsweredTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := treeOf([]int{3, 4, 2}, 2, 2)
		f := NewFleet(tr, epoch)
		node := rapid.Int32Range(0, int32(len(tr.Nodes)-1))
		for i := range int32(len(tr.Nodes)) {
			if err := f.See(i, shapes[rapid.IntRange(0, len(shapes)-1).Draw(t, "shape")], 0); err != nil {
				t.Fatal(err)
			}
			certify(t, f, i)
		}
		g := anyGang(t, "g")
		if rapid.Bool().Draw(t, "partition") {
			g.Within = []*NodeSet{f.View().Set(node.Draw(t, "in"), node.Draw(t, "in"), node.Draw(t, "in"))}
		}
		if rapid.Bool().Draw(t, "avoids") {
			g.Except = []*NodeSet{f.View().Set(node.Draw(t, "out"))}
		}
		data, err := json.MarshalIndent(Keep(f.View(), g), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var q Question
		if err := json.Unmarshal(data, &q); err != nil {
			t.Fatal(err)
		}
		s, again, err := q.Load()
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		want, got := Place(f.View(), g), Place(s, again)
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%+v: %+v, and asked again %+v\n%s", g, want, got, data)
		}
		if !want.OK() && f.View().Why(g, want.Refused) != s.Why(again, got.Refused) {
			t.Fatalf("%q, and asked again %q", f.View().Why(g, want.Refused), s.Why(again, got.Refused))
		}
	})
}

// What was changed by hand is no question that anybody asked.
func TestAChangedQuestionIsRefused(t *testing.T) {
	f := certified(t, treeOf([]int{2}, 1, 0), eight)
	q := Keep(f.View(), Gang{ID: "g", Nodes: 1})
	f.Bar(0, Bar{Why: "lost"})
	q.Snapshot = f.View().Save()
	if _, _, err := q.Load(); err == nil || !strings.Contains(err.Error(), "fingerprint") {
		t.Errorf("another snapshot: %v", err)
	}
	q = Keep(f.View(), Gang{ID: "g", Nodes: 1})
	q.Within = []string{"elsewhere"}
	if _, _, err := q.Load(); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a node that is not there: %v", err)
	}
}
