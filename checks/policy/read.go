package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Read reads a policy that this or another version of assay wrote. What it does not name, since its writer did not know it,
// has its built-in value; what this version does not know is left out. A list or a map that it names is taken whole.
func Read(raw []byte) (Policy, error) {
	p := Default()
	if err := read(reflect.ValueOf(&p).Elem(), raw); err != nil {
		return Policy{}, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// read reads raw into v, and leaves fields of structs as they are that raw does not name.
func read(v reflect.Value, raw json.RawMessage) error {
	if v.Kind() != reflect.Struct || v.Addr().Type().Implements(unmarshaler) {
		v.SetZero()
		return json.Unmarshal(raw, v.Addr().Interface())
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if text, ok := fields[name]; ok {
			if err := read(v.Field(i), text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
