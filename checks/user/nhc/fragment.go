package nhc

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Fragment writes a plan as a part of a policy file: what becomes of each line as comments, and the values to set. What holds
// for all nodes stands at the top level, the rest in overrides, one for each mask.
func Fragment(file string, items []Item) string {
	var b strings.Builder
	n := Count(items)
	fmt.Fprintf(&b, "# From %s: %d lines; %d built in, %d user checks, %d not needed, %d refused.\n", oneLine(file), len(items), n[BuiltIn], n[User], n[Void], n[Refused])
	for _, it := range items {
		fmt.Fprintf(&b, "#\n# line %d: %s\n#   %s: %s\n", it.Line.Number, oneLine(it.Line.Text), it.Kind, oneLine(it.Why))
	}
	top := map[string]any{}
	type override struct {
		line  int
		nodes []string
		set   map[string]any
	}
	var overrides []*override
	byMask := map[string]*override{}
	for _, it := range items {
		if it.Set == nil {
			continue
		}
		if it.Nodes == nil {
			merge(top, it.Set)
			continue
		}
		key := strings.Join(it.Nodes, " ")
		o := byMask[key]
		if o == nil {
			o = &override{it.Line.Number, it.Nodes, map[string]any{}}
			byMask[key], overrides = o, append(overrides, o)
		}
		merge(o.set, it.Set)
	}
	if len(top) > 0 || len(overrides) > 0 {
		b.WriteByte('\n')
	}
	block(&b, top, "")
	if len(overrides) > 0 {
		b.WriteString("overrides:\n")
	}
	for _, o := range overrides {
		fmt.Fprintf(&b, "  - name: %s\n    nodes: %s\n    set:\n", quote(fmt.Sprintf("NHC line %d", o.line)), flow(o.nodes))
		block(&b, o.set, "      ")
	}
	return b.String()
}

// merge lays b over a. a's maps are changed, b's are not. A plan's values for the same nodes do not contradict each other.
func merge(a, b map[string]any) {
	for _, k := range sortedKeys(b) {
		below, ok := b[k].(map[string]any)
		if !ok {
			a[k] = b[k]
			continue
		}
		under, had := a[k].(map[string]any)
		if !had {
			under = map[string]any{}
			a[k] = under
		}
		merge(under, below)
	}
}

func block(b *strings.Builder, m map[string]any, indent string) {
	for _, k := range sortedKeys(m) {
		switch v := m[k].(type) {
		case map[string]any:
			if len(v) == 0 {
				fmt.Fprintf(b, "%s%s: {}\n", indent, key(k))
				continue
			}
			fmt.Fprintf(b, "%s%s:\n", indent, key(k))
			block(b, v, indent+"  ")
		case []string:
			fmt.Fprintf(b, "%s%s: %s\n", indent, key(k), flow(v))
		case string:
			fmt.Fprintf(b, "%s%s: %s\n", indent, key(k), quote(v))
		default:
			fmt.Fprintf(b, "%s%s: %v\n", indent, key(k), v)
		}
	}
}

func key(k string) string {
	if strings.Trim(k, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && k != "" {
		return k
	}
	return quote(k)
}

func flow(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// quote writes text in double quotes, as JSON does and YAML reads.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(strings.ToValidUTF8(s, "�")); err != nil {
		panic(err) // a string
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// oneLine keeps text in its comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
