// Package worker runs golden suites on GPUs: the child, which makes all driver calls for one GPU and may be killed at any
// time, and the parent's side, which starts one child a GPU, bounds it in time and keeps what it has said.
//
// The child prints one JSON value a line: each Stage when it is done, and the whole golden.Result last. A child that was
// killed has said what it had; the rest is not tested.
package worker
