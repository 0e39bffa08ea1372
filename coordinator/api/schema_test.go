package api_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
)

var rewrite = flag.Bool("rewrite-schema", false, "write packaging/docs/openapi.json anew")

const published = "../../packaging/docs/openapi.json"

// The schema that is published is the one that the router works by.
func TestSchemaIsPublished(t *testing.T) {
	now, err := api.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(published, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	then, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(then) {
		t.Error("packaging/docs/openapi.json is another: go test ./coordinator/api -run Schema -rewrite-schema, and read the diff")
	}

	r := newRig(t)
	if status, body, h := do(t, r.as(t, authority.Nobody, "x"), "GET", r.url+api.PathSchema, nil); status != http.StatusOK || string(body) != string(now) || h.Get("Content-Type") != "application/json" {
		t.Errorf("served: %d %s, %d bytes", status, h.Get("Content-Type"), len(body))
	}
}

var ref = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// Every endpoint is in it, and every name it uses is defined.
func TestSchemaIsWhole(t *testing.T) {
	raw, err := api.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Paths      map[string]map[string]struct{ Summary string }
		Components struct {
			Schemas map[string]struct {
				Type       string
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	for _, rt := range api.Routes() {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if s.Paths[path][strings.ToLower(method)].Summary == "" || !api.Shaped(rt.Pattern) {
			t.Errorf("%s is not in the schema", rt.Pattern)
		}
	}
	if api.Shapes() != len(api.Routes()) {
		t.Errorf("%d shapes of %d endpoints", api.Shapes(), len(api.Routes()))
	}
	for _, m := range ref.FindAllStringSubmatch(string(raw), -1) {
		if s.Components.Schemas[m[1]].Type == "" {
			t.Errorf("%s is used and not defined", m[1])
		}
	}
	if node := s.Components.Schemas["wire.Node"]; node.Properties["certificate"] == nil || node.Properties["name"] == nil {
		t.Errorf("wire.Node: %+v", node)
	}
}
