package policyfile

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks/policy"
)

// Print writes p in the form that Load reads, every value set, in the order of the policy's fields. The version is not
// part of the file.
func Print(p policy.Policy) []byte {
	var b bytes.Buffer
	printStruct(&b, reflect.ValueOf(p), "", nil)
	return b.Bytes()
}

// printStruct writes a section. only, where it is not nil, names what is written of it: a map for a section below.
func printStruct(b *bytes.Buffer, v reflect.Value, indent string, only map[string]any) {
	for i := range v.NumField() {
		name, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		below, wanted := only[name]
		if name == "-" || only != nil && !wanted || opts == "omitempty" && v.Field(i).IsZero() {
			continue
		}
		sub, _ := below.(map[string]any)
		printEntry(b, name, v.Field(i), indent, sub)
	}
}

func printEntry(b *bytes.Buffer, name string, v reflect.Value, indent string, only map[string]any) {
	b.WriteString(indent + name + ":")
	switch set, isSet := v.Interface().(policy.Set); {
	case isSet:
		b.WriteByte('\n')
		var whole policy.Policy
		if err := json.Unmarshal([]byte(set.JSON()), &whole); err != nil {
			panic(fmt.Sprintf("policyfile: override %s: %v", set.JSON(), err)) // validated before it is printed
		}
		printStruct(b, reflect.ValueOf(whole), indent+"  ", set.Tree())
	case isText(v):
		b.WriteString(" " + scalar(v) + "\n")
	case v.Kind() == reflect.Struct:
		b.WriteByte('\n')
		printStruct(b, v, indent+"  ", only)
	case v.Kind() == reflect.Map:
		printMap(b, v, indent, only)
	case v.Kind() == reflect.Slice:
		printList(b, v, indent)
	default:
		b.WriteString(" " + scalar(v) + "\n")
	}
}

func printMap(b *bytes.Buffer, v reflect.Value, indent string, only map[string]any) {
	if v.Len() == 0 {
		b.WriteString(" {}\n")
		return
	}
	b.WriteByte('\n')
	for _, k := range sortedMapKeys(v) {
		sub, _ := only[fmt.Sprint(k)].(map[string]any)
		printEntry(b, scalar(k), v.MapIndex(k), indent+"  ", sub)
	}
}

func sortedMapKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.CanInt() {
			return cmp.Compare(a.Int(), b.Int())
		}
		return strings.Compare(a.String(), b.String())
	})
	return keys
}

// listLine writes a list on one line.
func listLine(v reflect.Value) string {
	var items []string
	for i := range v.Len() {
		items = append(items, scalar(v.Index(i)))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// printList writes values on one line, and sections below each other.
func printList(b *bytes.Buffer, v reflect.Value, indent string) {
	if v.Len() == 0 || v.Type().Elem().Kind() != reflect.Struct || isText(v.Index(0)) {
		b.WriteString(" " + listLine(v) + "\n")
		return
	}
	b.WriteByte('\n')
	for i := range v.Len() {
		var item bytes.Buffer
		printStruct(&item, v.Index(i), indent+"    ", nil)
		b.WriteString(indent + "  - ")
		b.Write(bytes.TrimLeft(item.Bytes(), " "))
	}
}

func isText(v reflect.Value) bool {
	_, ok := v.Interface().(encoding.TextMarshaler)
	return ok
}

// scalar writes a value that stands on one line.
func scalar(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("policyfile: %s of %s: %v", v, v.Type(), err)) // a policy's types write every value
		}
		if v.CanFloat() {
			return string(text)
		}
		return text2yaml(string(text))
	}
	switch v.Kind() {
	case reflect.String:
		return text2yaml(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	panic(fmt.Sprintf("policyfile: no form for a value of type %s", v.Type()))
}

// text2yaml writes text plain where it reads back as itself, and in double quotes otherwise.
func text2yaml(s string) string {
	plain := s != ""
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'):
		case i == 0 && isDuration(s):
		default:
			plain = false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "y", "n", "inf", "nan":
		plain = false
	}
	if plain {
		return s
	}
	return quote(s)
}

// isDuration reports whether s reads as a duration: digits first, and no number of YAML's.
func isDuration(s string) bool {
	var d policy.Duration
	return d.UnmarshalText([]byte(s)) == nil
}

// quote writes s as a double-quoted YAML scalar.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f && c < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c == 0x2028 || c == 0x2029 || c == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
