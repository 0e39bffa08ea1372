package coordinator

import "net/http"

// UnknownNodeError says that a node was never enrolled.
type UnknownNodeError struct{ Node string }

func (e *UnknownNodeError) Error() string { return "node " + e.Node + ": not enrolled" }

// Status is the HTTP status of the answer.
func (e *UnknownNodeError) Status() int { return http.StatusNotFound }

// Hint says what to do.
func (e *UnknownNodeError) Hint() string {
	return "`assay node list` shows the enrolled nodes; `assay node enroll " + e.Node + "` enrols it"
}

// notFoundError says that something named is not kept.
type notFoundError struct{ what, hint string }

func (e *notFoundError) Error() string { return e.what + ": not found" }
func (e *notFoundError) Status() int   { return http.StatusNotFound }
func (e *notFoundError) Hint() string  { return e.hint }

// refusedError says why an order is not carried out.
type refusedError struct{ why, hint string }

func (e *refusedError) Error() string { return e.why }
func (e *refusedError) Status() int   { return http.StatusConflict }
func (e *refusedError) Hint() string  { return e.hint }

// invalidError says what is wrong with what was sent.
type invalidError struct{ why, hint string }

func (e *invalidError) Error() string { return e.why }
func (e *invalidError) Status() int   { return http.StatusUnprocessableEntity }
func (e *invalidError) Hint() string  { return e.hint }

// goneError says that a cursor is older than what is kept.
type goneError struct{ cursor string }

func (e *goneError) Error() string { return "history after " + e.cursor + " is no longer kept" }
func (e *goneError) Status() int   { return http.StatusGone }
func (e *goneError) Hint() string  { return "start again without a cursor" }

// deposedError says that this process does not lead.
type deposedError struct{}

func (deposedError) Error() string { return "this assayd does not lead" }
func (deposedError) Status() int   { return http.StatusMisdirectedRequest }

var errDeposed error = deposedError{}
