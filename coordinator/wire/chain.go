package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Chained returns an entry with its place in the chain of history: Prev, the hash of the entry before ("" for the first),
// and Hash, over that and all the entry says. Text that is not UTF-8 is mended first, as JSON would mend it later.
func Chained(prev string, e HistoryEntry) HistoryEntry {
	for _, s := range []*string{&e.Node, &e.Event, &e.From, &e.To, &e.Case, &e.By} {
		*s = valid(*s)
	}
	for i, d := range e.Detail {
		if !utf8.ValidString(d) {
			e.Detail = append([]string(nil), e.Detail...)
			e.Detail[i] = valid(d)
		}
	}
	e.Prev = prev
	e.Hash = e.sum()
	return e
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// sum is the SHA-256 of the entry before and of each field that is set, by name and length, in base64url.
func (e HistoryEntry) sum() string {
	h := sha256.New()
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(h, "%s %d %s\n", name, len(value), value)
		}
	}
	field("prev", e.Prev)
	field("cursor", e.Cursor)
	field("at", e.At.UTC().Format(time.RFC3339Nano))
	field("node", e.Node)
	field("event", e.Event)
	field("from", e.From)
	field("to", e.To)
	field("case", e.Case)
	field("by", e.By)
	for _, d := range e.Detail {
		field("detail", d)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// An Audit says whether history is what was written.
type Audit struct {
	Records int           `json:"records"`          // kept
	Before  int           `json:"before,omitempty"` // of them, from before history was chained: they prove nothing
	First   *HistoryEntry `json:"first,omitempty"`  // the first of the chain that is kept
	Last    *HistoryEntry `json:"last,omitempty"`
	Broken  *AuditBreak   `json:"broken,omitempty"` // the first record that does not fit
}

// An AuditBreak is a record that does not fit, and why.
type AuditBreak struct {
	Record HistoryEntry `json:"record"`
	Why    string       `json:"why"`
}

// Verify follows the chain through entries, oldest first, to head, the hash of the last entry that was written. The entries
// before the oldest kept one are gone, so that its Prev is taken as it is.
func Verify(entries []HistoryEntry, head string) Audit {
	a := Audit{Records: len(entries)}
	for a.Before < len(entries) && entries[a.Before].Hash == "" {
		a.Before++
	}
	chain := entries[a.Before:]
	if len(chain) == 0 {
		if head != "" && len(entries) > 0 {
			a.Broken = &AuditBreak{entries[len(entries)-1], "it has no hash, and history was chained when it was written"}
		}
		return a
	}
	a.First, a.Last = &chain[0], &chain[len(chain)-1]
	for i, e := range chain {
		why := ""
		switch {
		case e.Hash == "":
			why = "it has no hash"
		case e.Hash != e.sum():
			why = "it is not what was written"
		case i == 0 && a.Before > 0 && e.Prev != "":
			why = "what was before it has lost its hash"
		case i > 0 && e.Prev != chain[i-1].Hash:
			why = "it follows another record than the one before it: records between them are missing or were changed"
		}
		if why != "" {
			a.Broken = &AuditBreak{e, why}
			return a
		}
	}
	if a.Last.Hash != head {
		a.Broken = &AuditBreak{*a.Last, "it is not the last that was written: records after it are missing"}
	}
	return a
}
