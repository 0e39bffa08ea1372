package policyfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/assay-gpu/assay/checks/policy"
)

// A Change is one value that two policies do not have in common.
type Change struct {
	Path string `json:"path"`          // as guard.fleet_hour_share; of an override, overrides.NAME.set.ecc.require_enabled
	Old  string `json:"old,omitempty"` // as the file writes it; empty: not set
	New  string `json:"new,omitempty"`
}

// Diff lists what is not the same in two policies, in the order of the file. The version is not part of it.
func Diff(old, new policy.Policy) []Change {
	was, is := flatten(old), flatten(new)
	var out []Change
	for _, l := range was.lines {
		if now := is.values[l.Path]; now != l.Old {
			out = append(out, Change{l.Path, l.Old, now})
		}
	}
	for _, l := range is.lines {
		if _, had := was.values[l.Path]; !had {
			out = append(out, Change{l.Path, "", l.Old})
		}
	}
	return out
}

// flat is a policy as a list of single values.
type flat struct {
	lines  []Change // Old holds the value
	values map[string]string
}

func flatten(p policy.Policy) *flat {
	f := &flat{values: map[string]string{}}
	f.structure("", reflect.ValueOf(p), nil)
	return f
}

func (f *flat) add(path, value string) {
	f.lines = append(f.lines, Change{Path: path, Old: value})
	f.values[path] = value
}

func under(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// structure adds what printStruct writes.
func (f *flat) structure(path string, v reflect.Value, only map[string]any) {
	for i := range v.NumField() {
		name, opts, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		below, wanted := only[name]
		if name == "-" || only != nil && !wanted || opts == "omitempty" && v.Field(i).IsZero() {
			continue
		}
		sub, _ := below.(map[string]any)
		f.value(under(path, name), v.Field(i), sub)
	}
}

func (f *flat) value(path string, v reflect.Value, only map[string]any) {
	switch set, isSet := v.Interface().(policy.Set); {
	case isSet:
		var whole policy.Policy
		if err := json.Unmarshal([]byte(set.JSON()), &whole); err != nil {
			panic(fmt.Sprintf("policyfile: override %s: %v", set.JSON(), err)) // validated before
		}
		f.structure(path, reflect.ValueOf(whole), set.Tree())
	case isText(v):
		f.add(path, scalar(v))
	case v.Kind() == reflect.Struct:
		f.structure(path, v, only)
	case v.Kind() == reflect.Map:
		for _, k := range sortedMapKeys(v) {
			sub, _ := only[fmt.Sprint(k)].(map[string]any)
			f.value(under(path, fmt.Sprint(k)), v.MapIndex(k), sub)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0 && !isText(v.Index(0)):
		var names []string
		for i := range v.Len() {
			name := fmt.Sprint(i)
			if n := v.Index(i).FieldByName("Name"); n.IsValid() && n.Kind() == reflect.String {
				name = n.String()
			}
			names = append(names, text2yaml(name))
			f.structure(under(path, name), v.Index(i), nil)
		}
		f.add(path, "["+strings.Join(names, ", ")+"]") // their order counts
	case v.Kind() == reflect.Slice:
		f.add(path, listLine(v))
	default:
		f.add(path, scalar(v))
	}
}
