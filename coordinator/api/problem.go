package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// An Error is an error with an HTTP status and a hint, for the backend as for this package.
type Error struct {
	Code   int    // HTTP status
	Detail string // what was tried, on what, and why it was refused
	Advice string // what to do; may be empty
}

// Errorf makes an Error without a hint.
func Errorf(status int, format string, args ...any) *Error {
	return &Error{Code: status, Detail: fmt.Sprintf(format, args...)}
}

// With returns the error with a hint.
func (e *Error) With(hint string) *Error {
	e.Advice = hint
	return e
}

func (e *Error) Error() string { return e.Detail }

// Status is the HTTP status.
func (e *Error) Status() int { return e.Code }

// Hint says what to do.
func (e *Error) Hint() string { return e.Advice }

// problemOf turns any error into the body of an answer.
func problemOf(err error) wire.Problem {
	p := wire.Problem{Status: http.StatusInternalServerError, Detail: err.Error()}
	var withStatus interface{ Status() int }
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &withStatus):
		if s := withStatus.Status(); s >= 400 && s <= 599 {
			p.Status = s
		}
	case errors.As(err, &tooLarge):
		p.Status = http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("the body is over %d bytes", tooLarge.Limit)
	case errors.Is(err, fs.ErrNotExist):
		p.Status = http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		p.Status = http.StatusGatewayTimeout
		p.Hint = "the control plane is slow or waits for Slurm or etcd; see its log, and try again"
	case errors.Is(err, context.Canceled):
		p.Status = 499 // the client went away; nobody reads this, but the log does
	}
	var withHint interface{ Hint() string }
	if errors.As(err, &withHint) && withHint.Hint() != "" {
		p.Hint = withHint.Hint()
	}
	p.Title = http.StatusText(p.Status)
	if p.Title == "" {
		p.Title = "client closed request"
	}
	return p
}

func writeProblem(w http.ResponseWriter, p wire.Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		return // a Problem of strings always encodes
	}
	w.Write(append(body, '\n')) // the client may be gone: there is nobody to tell
}
