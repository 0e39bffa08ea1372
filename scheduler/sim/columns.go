package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// columns are a header's names and places.
type columns map[string]int

func columnsOf(header []string) columns {
	c := columns{}
	for i, name := range header {
		c[strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))] = i // Excel begins a file with a byte order mark
	}
	return c
}

func (c columns) has(names ...string) bool { return len(c.lacks(names)) == 0 }

// lacks is those of the names that are no columns.
func (c columns) lacks(names []string) (missing []string) {
	for _, n := range names {
		if _, ok := c[n]; !ok {
			missing = append(missing, n)
		}
	}
	return missing
}

// A record is one row of a table. What is first found wrong with it is kept.
type record struct {
	columns columns
	row     []string
	wrong   string
}

func (r *record) text(name string) string {
	if i, ok := r.columns[name]; ok && i < len(r.row) {
		return strings.TrimSpace(r.row[i])
	}
	return ""
}

// bad keeps what is wrong, if nothing was before.
func (r *record) bad(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

// number is a column as a whole number from least to most.
func (r *record) number(name string, least, most int64) int64 {
	n, ok := r.maybe(name)
	if !ok {
		r.bad("%s is empty", name)
	} else if n < least || n > most {
		r.bad("%s is %d: want %d to %d", name, n, least, most)
	}
	return n
}

// maybe is a column as a whole number; false when it is empty.
func (r *record) maybe(name string) (int64, bool) {
	s := r.text(name)
	if s == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= -numberMost && f <= numberMost) {
		r.bad("%s %q is no number", name, s)
		return 0, true
	}
	return int64(f), true
}

// numberMost is the largest number that a trace may hold: seconds and counts are far below.
const numberMost = 1e15

// stamp is a column as a time, in Unix seconds; false when it is empty, or what logs write for it.
func (r *record) stamp(name string) (int64, bool) {
	s := r.text(name)
	if s == "" || strings.EqualFold(s, "None") || strings.EqualFold(s, "NaT") {
		return 0, false
	}
	for _, layout := range []string{"2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Unix(), true
		}
	}
	r.bad("%s %q is no time", name, s)
	return 0, false
}

// each calls f for every row. A row that f finds wrong, or that has not as many columns as the header, is a fault of the
// trace.
func each(rows *csv.Reader, c columns, t *Trace, f func(*record)) error {
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		var parse *csv.ParseError
		switch {
		case errors.As(err, &parse):
			what := parse.Err.Error()
			if errors.Is(err, csv.ErrFieldCount) {
				what = fmt.Sprintf("%d columns, the header has %d", len(row), rows.FieldsPerRecord)
			}
			t.fault(parse.StartLine, what)
			continue
		case err != nil:
			return fmt.Errorf("read the trace: %w", err)
		}
		r := record{columns: c, row: row}
		if f(&r); r.wrong != "" {
			line, _ := rows.FieldPos(0)
			t.fault(line, r.wrong)
		}
	}
}
