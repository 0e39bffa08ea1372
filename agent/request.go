package agent

import (
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

// A Hook is one of the programs the workload manager runs on a node.
type Hook string

const (
	Prolog      Hook = "prolog"
	Epilog      Hook = "epilog"
	HealthCheck Hook = "healthcheck"
)

// A HookRequest is what a hook asks, with the evidence gathered for it so far. Decide is called again as that grows.
type HookRequest struct {
	Hook   Hook
	Job    checks.Job
	GPUs   GPUSet
	Suite  *SuiteResult // nil until the suite has run
	Permit *Permit      // nil until it was asked for
}

// A Permit is how asking for leave to exit 1 went.
type Permit struct {
	Answered bool   // false: no answer in time
	Granted  bool   // our drain stands in the workload manager
	Reason   string // the drain's reason, or why refused, or why there was no answer
}

// NewHookRequest reads a hook's environment. Every value is hostile: what does not look as it should is left out.
func NewHookRequest(h Hook, env map[string]string) HookRequest {
	r := HookRequest{Hook: h, GPUs: ParseGPUs(env["SLURM_JOB_GPUS"], env["CUDA_VISIBLE_DEVICES"])}
	r.Job.ID = number(env["SLURM_JOB_ID"])
	r.Job.User = userName(env["SLURM_JOB_USER"])
	restarts := env["SLURM_RESTART_COUNT"]
	if restarts == "" {
		restarts = env["SLURM_JOB_RESTART_COUNT"]
	}
	r.Job.Restarts = small(restarts)
	r.Job.Nodes = small(env["SLURM_JOB_NUM_NODES"])
	if !r.GPUs.Unknown {
		r.Job.GPUs = r.GPUs.Indices
	}
	return r
}

// number returns s when it is 1 to 20 digits, else nothing.
func number(s string) string {
	if len(s) == 0 || len(s) > 20 || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// small reads a count below one million; anything else is 0.
func small(s string) int {
	if len(number(s)) == 0 || len(s) > 6 {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// userName returns s when it could be a login name, else nothing.
func userName(s string) string {
	const ok = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@$"
	if len(s) > 64 || strings.Trim(s, ok) != "" {
		return ""
	}
	return s
}
