package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// PathSchema answers the API's schema, OpenAPI 3.1, to anyone.
const PathSchema = "/v1/openapi.json"

type object = map[string]any

// allRoutes are those of a backend that has everything.
func allRoutes() []route {
	return slices.Concat(agentRoutes, operatorRoutes, enrolRoutes, jobRoutes, ruleRoutes, caseRoutes, repairRoutes, keyRoutes, auditRoutes, drillRoutes)
}

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

// Schema is the API's schema: every endpoint with whom it is for, what it reads and what it answers, from the router's own
// tables. The same program always writes the same bytes.
func Schema() ([]byte, error) {
	types := &schemas{of: object{}}
	problem := object{"description": "refused, or not answered", "content": object{"application/problem+json": object{"schema": types.schema(reflect.TypeFor[wire.Problem]())}}}
	paths := object{}
	for _, rt := range allRoutes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		item, _ := paths[path].(object)
		if item == nil {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(method)] = types.operation(rt, path, problem)
	}
	out, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": "assay control plane", "version": "1", "description": "Messages only gain fields. Errors are RFC 9457 problem details; 421 names the leader."},
		"paths":   paths,
		"components": object{"schemas": types.of, "securitySchemes": object{
			"node":   object{"type": "mutualTLS", "description": "a node's client certificate"},
			"person": object{"type": "mutualTLS", "description": "a person's client certificate, whose role x-assay-role names; or the unix socket of a control host"},
			"peer":   object{"type": "mutualTLS", "description": "another control host's client certificate"},
		}},
	}, "", " ")
	return append(out, '\n'), err
}

var securityOf = map[authority.Kind]string{authority.Node: "node", authority.Operator: "person", authority.Control: "peer"}

func (t *schemas) operation(rt route, path string, problem object) object {
	sh := shapes[rt.pattern]
	op := object{"summary": sh.does}
	var params []object
	for _, m := range pathParam.FindAllStringSubmatch(path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range sh.query {
		params = append(params, object{"name": p.name, "in": "query", "description": p.text, "schema": object{"type": p.kind}})
	}
	if rt.takesKey() {
		params = append(params, object{"name": wire.IdempotencyKey, "in": "header", "description": "makes the request safe to send again: under one key it is done once. Kept for 24 h. 422 with another request than before", "schema": object{"type": "string", "maxLength": 200}})
	}
	if params != nil {
		op["parameters"] = params
	}
	if sh.body != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": t.schema(reflect.TypeOf(sh.body))}}}
	}
	answers := object{"default": problem}
	switch {
	case sh.answer != nil:
		media := "application/json"
		if sh.stream {
			media = "application/x-ndjson"
		}
		answers["200"] = object{"description": "done", "content": object{media: object{"schema": t.schema(reflect.TypeOf(sh.answer))}}}
	case sh.bytes && strings.HasPrefix(rt.pattern, "GET "):
		answers["200"] = object{"description": "the file", "content": object{"application/octet-stream": object{}}}
	default:
		answers["204"] = object{"description": "done"}
	}
	op["responses"] = answers
	if scheme, ok := securityOf[rt.caller()]; ok {
		op["security"] = []object{{scheme: []string{}}}
	}
	if rt.role != authority.RoleNone {
		op["x-assay-role"] = rt.role
	}
	if rt.admins != nil {
		op["x-assay-admin-verbs"] = rt.admins
	}
	return op
}

// schemas gathers the named types met on the way.
type schemas struct{ of object }

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// schema is a type's JSON schema, as encoding/json writes its values.
func (t *schemas) schema(typ reflect.Type) object {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case typ == reflect.TypeFor[json.RawMessage](), typ.Kind() == reflect.Interface:
		return object{}
	case typ.Implements(jsonMarshaler) && typ.Kind() == reflect.Float64:
		return object{"type": "number"}
	case typ.Implements(jsonMarshaler):
		return object{"type": "object"}
	case typ.Implements(textMarshaler):
		return object{"type": "string"}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return t.schema(typ.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": t.schema(typ.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": t.schema(typ.Elem())}
	case reflect.Struct:
		return t.named(typ)
	}
	return object{"type": "integer"}
}

func (t *schemas) named(typ reflect.Type) object {
	name := typ.String() // package and type, "wire.Node"
	if typ.Name() == "" {
		return t.fields(typ)
	}
	if t.of[name] == nil {
		t.of[name] = object{} // for a type that holds itself
		t.of[name] = t.fields(typ)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (t *schemas) fields(typ reflect.Type) object {
	props, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(typ) {
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() || f.Anonymous && tag == "" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		props[tag] = t.schema(f.Type)
		if !strings.Contains(opts, "omit") {
			required = append(required, tag)
		}
	}
	out := object{"type": "object", "properties": props}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = slices.Compact(required)
	}
	return out
}
