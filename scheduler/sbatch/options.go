package sbatch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

type parser struct {
	r       Request
	faults  []Fault
	ignored []string
}

func (p *parser) fault(line int, option, format string, args ...any) {
	p.faults = append(p.faults, Fault{line, option, fmt.Sprintf(format, args...)})
}

// An option is one that assay knows. do is nil for one that means nothing here.
type option struct {
	long  string
	short byte
	flag  bool // takes no value, or only with =
	do    func(r *Request, v string) error
}

func number(into func(*Request) *int, least int) func(*Request, string) error {
	return func(r *Request, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > 1_000_000 {
			return fmt.Errorf("%q: want a number, %d or more", v, least)
		}
		*into(r) = n
		return nil
	}
}

func text(into func(*Request) *string) func(*Request, string) error {
	return func(r *Request, v string) error { *into(r) = v; return nil }
}

func refused(why string) func(*Request, string) error {
	return func(*Request, string) error { return fmt.Errorf("%s", why) }
}

// options lists what is known. Those that are refused say why.
func options() []option {
	return []option{
		{"job-name", 'J', false, text(func(r *Request) *string { return &r.Name })},
		{"nodes", 'N', false, nodes},
		{"ntasks", 'n', false, number(func(r *Request) *int { return &r.ntasks }, 1)},
		{"ntasks-per-node", 0, false, number(func(r *Request) *int { return &r.perNode }, 1)},
		{"gres", 0, false, gres},
		{"gpus", 'G', false, gpus(func(r *Request) *int { return &r.gpus })},
		{"gpus-per-node", 0, false, gpus(func(r *Request) *int { return &r.gpusPerNode })},
		{"gpus-per-task", 0, false, gpus(func(r *Request) *int { return &r.gpusPerTask })},
		{"time", 't', false, limit},
		{"partition", 'p', false, text(func(r *Request) *string { return &r.Partition })},
		{"account", 'A', false, text(func(r *Request) *string { return &r.Account })},
		{"qos", 'q', false, text(func(r *Request) *string { return &r.QOS })},
		{"chdir", 'D', false, text(func(r *Request) *string { return &r.Dir })},
		{"output", 'o', false, text(func(r *Request) *string { return &r.Output })},
		{"error", 'e', false, text(func(r *Request) *string { return &r.Error })},
		{"switches", 0, false, switches},
		{"segment", 0, false, number(func(r *Request) *int { return &r.Gang.Segment }, 1)},
		{"exclusive", 0, true, exclusive},
		{"requeue", 0, true, func(r *Request, _ string) error { r.Requeue = true; return nil }},
		{"no-requeue", 0, true, func(r *Request, _ string) error { r.Requeue = false; return nil }},
		{"hold", 'H', true, func(r *Request, _ string) error { r.Hold = true; return nil }},
		{"nice", 0, true, func(r *Request, v string) error {
			if v == "" {
				v = "100"
			}
			return number(func(r *Request) *int { return &r.Nice }, 0)(r, v)
		}},
		{"dependency", 'd', false, text(func(r *Request) *string { return &r.After })},
		{"begin", 'b', false, when(func(r *Request) *time.Time { return &r.Begin })},
		{"deadline", 0, false, when(func(r *Request) *time.Time { return &r.Deadline })},
		{"export", 0, false, export},
		{"certified", 0, false, certified},
		{"near", 0, false, near},
		{"parallel", 0, false, parallel},
		{"per-leaf", 0, false, number(func(r *Request) *int { return &r.Gang.PerLeaf }, 1)},
		{"spread", 0, true, func(r *Request, _ string) error { r.Gang.Spread = true; return nil }},
		{"same-grade", 0, true, func(r *Request, _ string) error { r.Gang.SameGrade = true; return nil }},
		{"reservation", 0, false, text(func(r *Request) *string { return &r.Reservation })},
		{"array", 'a', false, array},
		{"container", 0, false, refused("containers are not started: run the runtime inside the script")},
		{"container-image", 0, false, refused("containers are not started: run the runtime inside the script")},
		{"container-mounts", 0, false, refused("containers are not started: run the runtime inside the script")},
		{"nodelist", 'w', false, refused("nodes cannot be named; certificates and topology choose them")},
		{"exclude", 'x', false, refused("nodes cannot be left out by name; hold a node instead (assay node hold)")},
		{"constraint", 'C', false, refused("features are not kept")},
		{"cpus-per-task", 'c', false, nil},
		{"cpus-per-gpu", 0, false, nil},
		{"mem", 0, false, nil},
		{"mem-per-cpu", 0, false, nil},
		{"mem-per-gpu", 0, false, nil},
		{"mail-type", 0, false, nil},
		{"mail-user", 0, false, nil},
		{"comment", 0, false, nil},
		{"open-mode", 0, false, nil},
		{"parsable", 0, true, nil},
		{"signal", 0, false, nil},
		{"kill-on-invalid-dep", 0, false, nil},
		{"gpu-bind", 0, false, nil},
		{"wckey", 0, false, nil},
	}
}

// options takes in words from the left until one that is no option, and returns what is left.
func (p *parser) options(line int, words []string) []string {
	for len(words) > 0 {
		word := words[0]
		if word == "--" {
			return words[1:]
		}
		if len(word) < 2 || word[0] != '-' {
			if line > 0 {
				p.fault(line, word, "not an option")
			}
			return words
		}
		words = words[1:]
		name, value, given := strings.Cut(word, "=")
		o, ok := find(name)
		if !ok && word[1] != '-' { // -N4
			if o, ok = find(word[:2]); ok {
				name, value, given = word[:2], strings.TrimPrefix(word[2:], "="), len(word) > 2
			}
		}
		if !ok {
			p.fault(line, name, "assay does not know it")
			continue
		}
		if !given && !o.flag {
			if len(words) == 0 {
				p.fault(line, name, "needs a value")
				continue
			}
			value, words = words[0], words[1:]
		}
		if o.do == nil {
			p.ignored = append(p.ignored, "--"+o.long)
			continue
		}
		if err := o.do(&p.r, value); err != nil {
			p.fault(line, "--"+o.long, "%v", err)
		}
	}
	return nil
}

func find(name string) (option, bool) {
	for _, o := range options() {
		if name == "--"+o.long || o.short != 0 && name == "-"+string(o.short) {
			return o, true
		}
	}
	return option{}, false
}

// nodes is a number, or a range of which the ends are the same: a gang has one size.
func nodes(r *Request, v string) error {
	lo, hi, isRange := strings.Cut(v, "-")
	if isRange && lo != hi {
		return fmt.Errorf("%q: a gang has one size; name one number of nodes", v)
	}
	return number(func(r *Request) *int { return &r.nodes }, 1)(r, lo)
}

// gres is gpu:8 or gpu:h100:8; others than GPUs are not placed.
func gres(r *Request, v string) error {
	for part := range strings.SplitSeq(v, ",") {
		fields := strings.Split(part, ":")
		if fields[0] != "gpu" || len(fields) > 3 {
			return fmt.Errorf("%q: want gpu:N or gpu:TYPE:N", part)
		}
		count := "1"
		if len(fields) > 1 {
			count = fields[len(fields)-1]
		}
		if len(fields) == 3 {
			if err := ofType(r, fields[1]); err != nil {
				return err
			}
		}
		if err := number(func(r *Request) *int { return &r.gpusPerNode }, 0)(r, count); err != nil {
			return err
		}
	}
	return nil
}

// ofType takes in a type of GPU. Gangs are placed by certificate and topology, not yet by product, so a product makes no
// difference, which is told; a part of a GPU is another thing than a GPU.
func ofType(r *Request, name string) error {
	if slice.MatchString(name) {
		return fmt.Errorf("%q is a part of a GPU, and gangs have whole ones: gpu:N", name)
	}
	r.gpuType = name
	return nil
}

// slice is how MIG profiles are named: 1g.10gb, 3g.40gb+me. NVIDIA, "MIG User Guide", device names.
var slice = regexp.MustCompile(`(?:^|[-_])\d+g\.\d+gb\b`)

// gpus is N or TYPE:N.
func gpus(into func(*Request) *int) func(*Request, string) error {
	return func(r *Request, v string) error {
		if i := strings.LastIndexByte(v, ':'); i >= 0 {
			if err := ofType(r, v[:i]); err != nil {
				return err
			}
			v = v[i+1:]
		}
		return number(into, 1)(r, v)
	}
}

// switches is N, or N@TIME.
func switches(r *Request, v string) error {
	n, wait, timed := strings.Cut(v, "@")
	if err := number(func(r *Request) *int { return &r.Gang.Switches }, 1)(r, n); err != nil {
		return err
	}
	if !timed {
		return nil
	}
	d, err := ParseLimit(wait)
	if err != nil {
		return err
	}
	r.Gang.SwitchWait = d
	return nil
}

func limit(r *Request, v string) error {
	if v == "0" || strings.EqualFold(v, "infinite") || strings.EqualFold(v, "unlimited") {
		r.Gang.Limit = 0
		return nil
	}
	d, err := ParseLimit(v)
	if err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("%q: want more than nothing", v)
	}
	r.Gang.Limit = d
	return nil
}

// export is ALL, NONE, or a list of NAME or NAME=VALUE.
func export(r *Request, v string) error {
	r.ExportAll, r.Export = false, nil
	for part := range strings.SplitSeq(v, ",") {
		switch {
		case part == "ALL":
			r.ExportAll = true
		case part == "NONE" || part == "NIL":
		case part == "":
			return fmt.Errorf("%q: an empty name", v)
		default:
			r.Export = append(r.Export, part)
		}
	}
	return nil
}

// when is a time of the caller's clock, which the request carries.
func when(into func(*Request) *time.Time) func(*Request, string) error {
	return func(r *Request, v string) error {
		t, err := ParseWhen(v, r.now)
		*into(r) = t
		return err
	}
}

func array(r *Request, v string) (err error) {
	r.Array, r.Throttle, err = ParseArray(v)
	return err
}

// exclusive is plain, or exclusive=user: as much as plain here, since the nodes of a gang are shared with nobody or with
// anybody. The other forms mean what assay has no word for.
func exclusive(r *Request, v string) error {
	switch v {
	case "", "user":
		r.Gang.Whole = true
		return nil
	case "topo":
		return fmt.Errorf("topo: whole leaves cannot be asked for; --segment keeps nodes together")
	}
	return fmt.Errorf("%q: want it plain", v)
}
