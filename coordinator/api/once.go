package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"

	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Once is a person's write that must happen once, however often it is sent: the request carries a key. The backend notes
// the key in the transaction that does the write, and does nothing more when it comes again.
type Once struct {
	caller, key string
	sum         hash.Hash // over method, path and body

	again bool
	ref   string
}

type onceKey struct{}

// OnceOf is the key that came with a request; nil: none.
func OnceOf(ctx context.Context) *Once {
	o, _ := ctx.Value(onceKey{}).(*Once)
	return o
}

// WithOnce is for requests that come in over no API: caller's write under key, of what.
func WithOnce(ctx context.Context, caller, key, what string) context.Context {
	o := &Once{caller: caller, key: key, sum: sha256.New()}
	o.sum.Write([]byte(what))
	return context.WithValue(ctx, onceKey{}, o)
}

// ID names the key of this caller in the store; one caller's keys are not another's.
func (o *Once) ID() string {
	sum := sha256.Sum256([]byte(o.caller + "\x00" + o.key))
	return hex.EncodeToString(sum[:16])
}

// Sum is over what is asked for.
func (o *Once) Sum() string { return hex.EncodeToString(o.sum.Sum(nil)) }

// Repeat notes that the write was done before; ref is what it noted for its answer.
func (o *Once) Repeat(ref string) { o.again, o.ref = true, ref }

// Repeated reports whether the write of ctx was done before, and what it noted for its answer.
func Repeated(ctx context.Context) (ref string, again bool) {
	if o := OnceOf(ctx); o != nil {
		return o.ref, o.again
	}
	return "", false
}

// takesKey reports whether the route heeds wire.IdempotencyKey. Answers that hold secrets are not given twice, a batch has
// keys of its own, and rules are the same however often they are kept.
func (rt route) takesKey() bool {
	if rt.role == authority.RoleNone || rt.wait == 0 {
		return false
	}
	switch rt.pattern {
	case "POST " + wire.PathEnrolment, "POST " + wire.PathOperators, "POST " + wire.PathJobs + "/batch", "POST " + wire.PathJobs + "/plan",
		"POST " + wire.PathRules, "POST " + wire.PathKeys + "/rotate":
		return false
	}
	return strings.HasPrefix(rt.pattern, "POST ") || strings.HasPrefix(rt.pattern, "PUT ")
}

// withKey puts the request's key in its context.
func (rt route) withKey(ctx context.Context, r *http.Request, who caller) (context.Context, error) {
	keys := r.Header.Values(wire.IdempotencyKey)
	if len(keys) == 0 || !rt.takesKey() {
		return ctx, nil
	}
	if len(keys) > 1 || !token(keys[0]) {
		return ctx, Errorf(http.StatusBadRequest, "%s: want one, of 1 to 200 printable ASCII characters without a space", wire.IdempotencyKey)
	}
	return WithOnce(ctx, who.name, keys[0], r.Method+" "+r.URL.RequestURI()+"\n"), nil
}
