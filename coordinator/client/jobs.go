package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// Submit hands a job to the built-in scheduler.
func (c *Client) Submit(ctx context.Context, ask wire.JobAsk) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodPost, wire.PathJobs, nil, ask)
}

// SubmitBatch hands in many jobs. Sent again with the same key, those that were taken are not taken again.
func (c *Client) SubmitBatch(ctx context.Context, b wire.Batch) ([]wire.BatchAnswer, error) {
	return call[[]wire.BatchAnswer](ctx, c, http.MethodPost, wire.PathJobs+"/batch", nil, b)
}

// PlanJob asks where a job would start now, or why not; with keep the answer holds the question, gang and fleet. Nothing is
// kept of it there.
func (c *Client) PlanJob(ctx context.Context, ask wire.JobAsk, keep bool) (wire.JobPlan, error) {
	return call[wire.JobPlan](ctx, c, http.MethodPost, wire.PathJobs+"/plan", url.Values{"keep": {strconv.FormatBool(keep)}}, ask)
}

// Jobs lists jobs, oldest first; those that have ended only with all.
func (c *Client) Jobs(ctx context.Context, all bool) ([]wire.Job, error) {
	return call[[]wire.Job](ctx, c, http.MethodGet, wire.PathJobs, url.Values{"all": {strconv.FormatBool(all)}}, nil)
}

// Job returns one job, array, or task of one (12_3).
func (c *Client) Job(ctx context.Context, id string) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodGet, jobPath(id), nil, nil)
}

// CancelJob ends a job, whether it waits or runs.
func (c *Client) CancelJob(ctx context.Context, id string, v wire.JobVerb) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodPost, jobPath(id)+"/cancel", nil, v)
}

// HoldJob keeps a waiting job from starting.
func (c *Client) HoldJob(ctx context.Context, id string, v wire.JobVerb) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodPost, jobPath(id)+"/hold", nil, v)
}

// ReleaseJob lets a held job go on.
func (c *Client) ReleaseJob(ctx context.Context, id string, v wire.JobVerb) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodPost, jobPath(id)+"/release", nil, v)
}

// RequeueJob puts a job that runs, or has ended, back into the queue.
func (c *Client) RequeueJob(ctx context.Context, id string, v wire.JobVerb) (wire.Job, error) {
	return call[wire.Job](ctx, c, http.MethodPost, jobPath(id)+"/requeue", nil, v)
}

// JobLogs returns the ends of what the ranks of a job's last launch wrote.
func (c *Client) JobLogs(ctx context.Context, id string) (wire.JobLogs, error) {
	return call[wire.JobLogs](ctx, c, http.MethodGet, jobPath(id)+"/logs", nil, nil)
}

func jobPath(id string) string { return wire.PathJobs + "/" + url.PathEscape(id) }
