package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// story is a chained history of n entries, some with every field, and what its head is.
func story(n int) (es []HistoryEntry, head string) {
	for i := range n {
		e := HistoryEntry{Cursor: fmt.Sprintf("%016x", i+1), At: time.Date(2026, 11, 29, 20, 0, i, 12345, time.FixedZone("", 3600)), Event: "seen", By: "agent"}
		if i%2 == 1 {
			e.Node, e.From, e.To, e.Case, e.Detail = "gpu001", "certified", "draining", "Q-7F3K", []string{"revoke 7", "open case Q-7F3K"}
		}
		e = Chained(head, e)
		es, head = append(es, e), e.Hash
	}
	return es, head
}

// What was written and read back as JSON is whole, text that is no UTF-8 included.
func TestChainHolds(t *testing.T) {
	es, head := story(7)
	e := Chained(head, HistoryEntry{Cursor: "8", Event: "note \xff\xfe\xffx", By: "a<b>\u2028", Detail: []string{"ok", "\xc3"}})
	es, head = append(es, e), e.Hash
	b, err := json.Marshal(es)
	if err != nil {
		t.Fatal(err)
	}
	var back []HistoryEntry
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if a := Verify(back, head); a.Broken != nil || a.Records != 8 || a.Before != 0 || a.Last.Hash != head {
		t.Errorf("%+v broken %+v", a, a.Broken)
	}
	if a := Verify(back[3:], head); a.Broken != nil {
		t.Errorf("without the oldest, which are no longer kept: %+v", a.Broken)
	}
	if a := Verify(nil, ""); a.Broken != nil {
		t.Errorf("nothing: %+v", a.Broken)
	}
}

// Entries from before there was a chain are counted, and prove nothing; the chain after them holds.
func TestChainBeginsLater(t *testing.T) {
	es, head := story(4)
	old := []HistoryEntry{{Cursor: "0", Event: "seen"}, {Cursor: "00", Event: "seen"}}
	if a := Verify(append(old, es...), head); a.Broken != nil || a.Before != 2 || a.Records != 6 {
		t.Errorf("%+v broken %+v", a, a.Broken)
	}
	if a := Verify(old, ""); a.Broken != nil || a.Before != 2 {
		t.Errorf("old alone: %+v", a)
	}
}

// Whatever is done to a record, the first that does not fit is named.
func TestChainBreaks(t *testing.T) {
	change := func(i int, do func(*HistoryEntry)) func([]HistoryEntry) []HistoryEntry {
		return func(es []HistoryEntry) []HistoryEntry { do(&es[i]); return es }
	}
	for name, c := range map[string]struct {
		do    func([]HistoryEntry) []HistoryEntry
		named string // cursor's last digit
		why   string
	}{
		"another author":             {change(3, func(e *HistoryEntry) { e.By = "bob" }), "4", "not what was written"},
		"another event":              {change(3, func(e *HistoryEntry) { e.Event = "seen " }), "4", "not what was written"},
		"another time":               {change(3, func(e *HistoryEntry) { e.At = e.At.Add(time.Nanosecond) }), "4", "not what was written"},
		"another node":               {change(3, func(e *HistoryEntry) { e.Node = "gpu002" }), "4", "not what was written"},
		"another state":              {change(3, func(e *HistoryEntry) { e.From, e.To = e.To, e.From }), "4", "not what was written"},
		"another case":               {change(3, func(e *HistoryEntry) { e.Case = "" }), "4", "not what was written"},
		"another number":             {change(3, func(e *HistoryEntry) { e.Cursor = "9" }), "9", "not what was written"},
		"a line of detail less":      {change(3, func(e *HistoryEntry) { e.Detail = e.Detail[:1] }), "4", "not what was written"},
		"two lines made one":         {change(3, func(e *HistoryEntry) { e.Detail = []string{strings.Join(e.Detail, "\n")} }), "4", "not what was written"},
		"the oldest kept":            {change(0, func(e *HistoryEntry) { e.By = "bob" }), "1", "not what was written"},
		"changed and hashed again":   {change(3, func(e *HistoryEntry) { e.By = "bob"; *e = Chained(e.Prev, *e) }), "5", "follows another record"},
		"hash taken away":            {change(3, func(e *HistoryEntry) { e.Hash = "" }), "4", "no hash"},
		"hashes of the oldest taken": {func(es []HistoryEntry) []HistoryEntry { es[0].Hash, es[1].Hash = "", ""; return es }, "3", "lost its hash"},
		"all hashes taken": {func(es []HistoryEntry) []HistoryEntry {
			for i := range es {
				es[i].Hash = ""
			}
			return es
		}, "6", "no hash"},
		"one missing":     {func(es []HistoryEntry) []HistoryEntry { return slices.Delete(es, 2, 3) }, "4", "follows another record"},
		"two swapped":     {func(es []HistoryEntry) []HistoryEntry { es[2], es[3] = es[3], es[2]; return es }, "4", "follows another record"},
		"one told twice":  {func(es []HistoryEntry) []HistoryEntry { return slices.Insert(es, 3, es[2]) }, "3", "follows another record"},
		"the end missing": {func(es []HistoryEntry) []HistoryEntry { return es[:4] }, "4", "records after it are missing"},
	} {
		es, head := story(6)
		a := Verify(c.do(es), head)
		if a.Broken == nil || !strings.HasSuffix(a.Broken.Record.Cursor, c.named) || !strings.Contains(a.Broken.Why, c.why) {
			t.Errorf("%s: %+v, want record %s: %s", name, a.Broken, c.named, c.why)
		}
	}
}
