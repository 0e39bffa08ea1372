package dcgm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Parse reads the output of dcgmi diag: JSON of any generation, with text before, between and after, in one or more
// documents; or the table that it prints for people. It never fails: what cannot be read is missing from the report, and
// the report says where the output ended early.
func Parse(output string) Report {
	p := &parser{}
	for at := 0; ; {
		i := strings.IndexByte(output[at:], '{')
		if i < 0 {
			break
		}
		at += i
		o, end, cut, bad := readObject(output, at)
		d := &parser{numbers: numbersOf(findVersion(o, 0))}
		d.object(o, 0)
		if !d.found {
			at++ // a brace in some other text; what stands in it is looked at too, if it is no object
			if bad < 0 && !cut {
				at = end
			}
			continue
		}
		p.add(d)
		at = max(end, at+1)
		if cut {
			p.Cut = true
		}
		if bad >= 0 {
			p.Broken = max(bad, 1)
		}
	}
	if p.Runs == 0 && len(p.Runtime) == 0 {
		if d, ok := parseTable(output); ok {
			p.add(d)
		}
	}
	slices.SortStableFunc(p.GPUs, func(a, b Device) int { return a.Index - b.Index })
	return p.Report
}

// parser collects a report.
type parser struct {
	Report
	numbers numbering
	found   bool // something of the diagnostic's was seen
}

func (p *parser) add(d *parser) {
	p.Tests = append(p.Tests, d.Tests...)
	p.Runtime = append(p.Runtime, d.Runtime...)
	p.Runs += d.Runs
	p.Table = p.Table || d.Table
	for _, s := range []struct {
		to   *string
		from string
	}{{&p.Version, d.Version}, {&p.Driver, d.Driver}, {&p.Overall, d.Overall}} {
		if s.from != "" {
			*s.to = s.from
		}
	}
	for _, g := range d.GPUs {
		p.device(g.Index, g.Serial)
	}
}

// numbersOf gives the numbering of severities of a version. The first output that carries a severity is 3.3's, so output
// that does not say its version is read as newer.
func numbersOf(version string) numbering {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 == nil && err2 == nil && (a < 3 || a == 3 && b < 3) {
		return numbersBefore33
	}
	return numbersSince33
}

// maxWalk bounds how deep the results may lie: iterations hold a root each.
const maxWalk = 8

func findVersion(o *object, depth int) string {
	if o == nil || depth > maxWalk {
		return ""
	}
	if v, ok := o.get("version").(string); ok {
		return v
	}
	for _, m := range o.members {
		if sub, ok := m.value.(*object); ok {
			if v := findVersion(sub, depth+1); v != "" {
				return v
			}
		}
	}
	return ""
}

// object looks through an object for what the diagnostic writes. Roots, metadata and iterations differ by generation; the
// names of what they hold do not.
func (p *parser) object(o *object, depth int) {
	if o == nil || depth > maxWalk {
		return
	}
	for _, m := range o.members {
		switch m.key {
		case "test_categories":
			if list, ok := m.value.([]any); ok {
				p.found = true
				p.Runs++
				p.categories(list)
			}
		case "runtime_error":
			p.found = true
			if t := oneLine(asText(m.value)); t != "" {
				p.Runtime = append(p.Runtime, t)
			}
		case "version":
			p.Version = asText(m.value)
		case "Driver Version Detected":
			p.Driver = asText(m.value)
		case "Overall Result":
			p.Overall = asText(m.value)
		case "GPU Device Serials":
			p.serials(m.value)
		case "entity_groups":
			p.entityGroups(m.value)
		default:
			p.below(m.value, depth)
			if strings.HasPrefix(m.key, "DCGM ") && strings.HasSuffix(m.key, "Diagnostic") {
				p.found = true
			}
		}
	}
}

func (p *parser) below(v any, depth int) {
	switch v := v.(type) {
	case *object:
		p.object(v, depth+1)
	case []any:
		for _, e := range v {
			if o, ok := e.(*object); ok {
				p.object(o, depth+1)
			}
		}
	}
}

func (p *parser) serials(v any) {
	o, ok := v.(*object)
	if !ok {
		return
	}
	for _, m := range o.members {
		if i, err := strconv.Atoi(m.key); err == nil && i >= 0 {
			p.device(i, asText(m.value))
		}
	}
}

func (p *parser) entityGroups(v any) {
	for _, g := range objects(v) {
		if groupOf(g) != OfGPU {
			continue
		}
		for _, e := range objects(g.get("entities")) {
			if i, ok := asInt(e.get("entity_id")); ok {
				p.device(i, asText(e.get("serial_num")))
			}
		}
	}
}

func (p *parser) device(index int, serial string) {
	for i := range p.GPUs {
		if p.GPUs[i].Index == index {
			if serial != "" {
				p.GPUs[i].Serial = serial
			}
			return
		}
	}
	if index >= 0 && index < maxIndex {
		p.GPUs = append(p.GPUs, Device{index, serial})
	}
}

// maxIndex bounds what is taken for an entity's number. DCGM_MAX_NUM_DEVICES is 32; DCGM_GROUP_MAX_ENTITIES_V2 is 1024.
const maxIndex = 1024

func (p *parser) categories(list []any) {
	for _, c := range objects(list) {
		for _, t := range objects(c.get("tests")) {
			p.test(asText(c.get("category")), t)
		}
	}
}

func (p *parser) test(category string, t *object) {
	out := Test{Category: category, Name: oneLine(asText(t.get("name")))}
	if out.Name == "" {
		return // cut before it was named, or a hole
	}
	for _, r := range objects(t.get("results")) {
		if r.whole {
			out.Rows = append(out.Rows, p.rows(r)...)
		}
	}
	if s, ok := t.get("test_summary").(*object); ok && s.whole {
		out.summary(Row{Status: statusOf(s.get("status")), Errors: p.errors(s), Info: texts(s.get("info"))})
	}
	for _, r := range out.Rows {
		if r.Entity.Group == OfGPU {
			p.device(r.Entity.ID, "")
		}
	}
	p.Tests = append(p.Tests, out)
}

// summary takes in a test's summary. It repeats the errors of the rows; what it adds is of no entity.
func (t *Test) summary(s Row) {
	if len(t.Rows) == 0 {
		if s.Status == Passed || s.Status == Warned { // nobody's pass: the results are holes, or there are none
			s.Status = Skipped
		}
		t.Rows = []Row{s.placed()}
		return
	}
	var news []Error
	for _, e := range s.Errors {
		if !slices.ContainsFunc(t.Rows, func(r Row) bool { return slices.Contains(r.Errors, e) }) {
			news = append(news, e)
		}
	}
	failed := func(r Row) bool { return r.Status == Failed || len(r.Errors) > 0 }
	if len(news) == 0 && s.Status == Failed && !slices.ContainsFunc(t.Rows, failed) {
		news = []Error{{Code: -1, Category: -1, Severity: Unsaid, Text: "its summary is a failure, and no result says why"}}
		s.Status = StatusUnknown
	}
	if len(news) > 0 {
		t.Rows = append(t.Rows, Row{Status: s.Status, Errors: news})
	}
}

// rows reads one result: of a GPU, of an entity, of several GPUs, or of none.
func (p *parser) rows(r *object) []Row {
	row := Row{Status: statusOf(r.get("status")), Errors: p.errors(r), Info: texts(r.get("info"))}
	if id, ok := asInt(r.get("entity_id")); ok && id < maxIndex {
		row.Entity = Entity{groupOf(r), id}
		if row.Entity.Group == OfNode {
			row.Entity.ID = 0
		}
		return []Row{row}
	}
	ids := idList(r.get("gpu_id"))
	if ids == nil {
		ids = idList(r.get("gpu_ids"))
	}
	if len(ids) == 0 {
		return []Row{row.placed()}
	}
	out := make([]Row, len(ids))
	for i, id := range ids {
		out[i] = row
		out[i].Entity = Entity{OfGPU, id}
	}
	if len(ids) > 1 {
		share(out)
	}
	return out
}

// share gives each GPU of a common result the errors that name it. An error that names none of them, or several, is
// everybody's; a GPU that is left with no error by a failure has no result of its own.
func share(rows []Row) {
	errors := rows[0].Errors
	for i := range rows {
		rows[i].Errors = nil
		for _, e := range errors {
			if id, ok := namedGPU(e.Text); !ok || id == rows[i].Entity.ID || !slices.ContainsFunc(rows, func(r Row) bool { return r.Entity.ID == id }) {
				rows[i].Errors = append(rows[i].Errors, e)
			}
		}
		if len(errors) > 0 && len(rows[i].Errors) == 0 {
			rows[i].Status = StatusUnknown
		}
	}
}

// placed gives a result of no entity the GPU that its errors name, if all name the same.
func (r Row) placed() Row {
	id, named := 0, false
	for i, e := range r.Errors {
		n, ok := namedGPU(e.Text)
		if !ok || i > 0 && n != id {
			return r
		}
		id, named = n, true
	}
	if named {
		r.Entity = Entity{OfGPU, id}
	}
	return r
}

var gpuInText = regexp.MustCompile(`\bGPU ?(\d{1,3})\b`)

// namedGPU gives the one GPU that a text names; false when it names none, or several.
func namedGPU(text string) (int, bool) {
	id, found := 0, false
	for _, m := range gpuInText.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil || found && n != id {
			return 0, false
		}
		id, found = n, true
	}
	return id, found
}

// errors reads a result's warnings: one text, texts, or objects with code, category and severity. Where they are texts the
// code stands beside them.
func (p *parser) errors(r *object) []Error {
	var out []Error
	add := func(o *object, text string) {
		e := Error{Code: -1, Category: -1, Severity: Unsaid, Text: oneLine(text)}
		if o != nil {
			if n, ok := asInt(o.get("error_id")); ok {
				e.Code = n
			}
			if n, ok := asInt(o.get("error_category")); ok {
				e.Category = n
			}
			if n, ok := asInt(o.get("error_severity")); ok {
				e.Severity = p.numbers.severity(n)
			}
		}
		if e.Text != "" || e.Code > 0 {
			out = append(out, e)
		}
	}
	switch w := r.get("warnings").(type) {
	case string:
		add(r, w)
	case *object:
		add(w, asText(w.get("warning")))
	case []any:
		for i, e := range w {
			switch e := e.(type) {
			case *object:
				add(e, asText(e.get("warning")))
			case string:
				if i == 0 {
					add(r, e)
				} else {
					add(nil, e)
				}
			}
		}
	}
	if len(out) == 0 {
		add(r, "")
	}
	return out
}

func statusOf(v any) Status {
	t := strings.ToLower(strings.NewReplacer(" ", "", "_", "").Replace(asText(v)))
	switch t {
	case "pass", "passed":
		return Passed
	case "warn", "warning":
		return Warned
	case "fail", "failed":
		return Failed
	case "skip", "skipped", "notrun":
		return Skipped
	}
	return StatusUnknown
}

func groupOf(o *object) Group {
	if n, ok := asInt(o.get("entity_group_id")); ok {
		return Group(n)
	}
	switch strings.ToUpper(asText(o.get("entity_group"))) {
	case "GPU":
		return OfGPU
	case "CPU":
		return OfCPU
	case "SWITCH", "NVSWITCH":
		return OfSwitch
	}
	return OfNode
}

// idList reads GPU numbers: a number, or text as "0" or "0,1,2", or a list of either.
func idList(v any) []int {
	var out []int
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, idList(e)...)
		}
	case string:
		for f := range strings.SplitSeq(v, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(f)); err == nil && n >= 0 && n < maxIndex {
				out = append(out, n)
			}
		}
	case number:
		if n, ok := asInt(v); ok && n < maxIndex {
			out = append(out, n)
		}
	}
	return out
}

// objects gives the objects of a list, its holes left out.
func objects(v any) []*object {
	list, _ := v.([]any)
	var out []*object
	for _, e := range list {
		if o, ok := e.(*object); ok {
			out = append(out, o)
		}
	}
	return out
}

func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, oneLine(v))
	case []any:
		for _, e := range v {
			if t := oneLine(asText(e)); t != "" {
				out = append(out, t)
			}
		}
	}
	return out
}

func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case number:
		return string(v)
	}
	return ""
}

// asInt reads a number that is not negative.
func asInt(v any) (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(asText(v)))
	return n, err == nil && n >= 0
}

// maxText bounds a text in characters.
const maxText = 512

// oneLine makes a text one line of printable characters, of bounded length.
func oneLine(s string) string {
	var b strings.Builder
	n, space := 0, false
	for _, c := range strings.ToValidUTF8(s, "�") {
		switch {
		case unicode.IsSpace(c) || unicode.IsControl(c):
			space = true
			continue
		case !unicode.IsPrint(c):
			c = '�'
		}
		if n >= maxText {
			b.WriteString("…")
			break
		}
		if space && n > 0 {
			b.WriteByte(' ')
			n++
		}
		space = false
		b.WriteRune(c)
		n++
	}
	return b.String()
}
