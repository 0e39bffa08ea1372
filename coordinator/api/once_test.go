package api

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Writes of people take a key, but those whose answers hold secrets; reads and machines' calls do not.
func TestWhichRoutesTakeAKey(t *testing.T) {
	for _, rt := range allRoutes() {
		want := rt.role != authority.RoleNone && !strings.HasPrefix(rt.pattern, "GET ") && !strings.HasPrefix(rt.pattern, "DELETE ")
		switch rt.pattern {
		case "POST " + wire.PathEnrolment, "POST " + wire.PathOperators, "POST /v1/jobs/batch", "POST /v1/jobs/plan", "POST " + wire.PathRules, "POST " + wire.PathKeys + "/rotate":
			want = false
		}
		if rt.takesKey() != want {
			t.Errorf("%s takes a key: %v", rt.pattern, rt.takesKey())
		}
	}
}

// The key's request is its method, its path and its body; the key itself is bounded.
func TestWhatAKeyIsOver(t *testing.T) {
	freeze := route{pattern: "POST " + wire.PathGuard + "/{verb}", role: authority.RoleOperator, wait: readWait}
	sum := func(path, key, body string) (string, error) {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set(wire.IdempotencyKey, key)
		ctx, err := freeze.withKey(context.Background(), r, caller{name: "alice"})
		if err != nil {
			return "", err
		}
		s := &Server{}
		var v wire.GuardVerb
		if err := decode(call{s: s, w: httptest.NewRecorder(), r: r, ctx: ctx, rt: freeze}, maxBody, true, &v); err != nil {
			t.Fatal(err)
		}
		return OnceOf(ctx).Sum(), nil
	}
	a, err := sum("/v1/guard/freeze", "k", `{"reason":"a"}`)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := sum("/v1/guard/freeze", "k", `{"reason":"a"}`); again != a {
		t.Error("the same request has another sum")
	}
	if body, _ := sum("/v1/guard/freeze", "k", `{"reason":"b"}`); body == a {
		t.Error("another body has the same sum")
	}
	if path, _ := sum("/v1/guard/thaw", "k", `{"reason":"a"}`); path == a {
		t.Error("another path has the same sum")
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 201)} {
		if _, err := sum("/v1/guard/freeze", bad, `{}`); err == nil {
			t.Errorf("key %.20q was taken", bad)
		}
	}
}
