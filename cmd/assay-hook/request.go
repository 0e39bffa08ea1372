package main

// passed are the variables that the agent is told of, and no others: the environment of a job is its user's.
var passed = [...]string{
	"SLURMD_NODENAME", "SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_JOB_PARTITION", "SLURM_JOB_NUM_NODES",
	"SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_RESTART_COUNT",
	"SLURM_JOB_RESTART_COUNT", "SLURM_JOB_EXIT_CODE", "SLURM_JOB_EXIT_CODE2", "SLURM_SCRIPT_CONTEXT",
}

// maxValue is the most of one variable that is passed, in bytes.
const maxValue = 4 << 10

// request is what is sent: "ASSAY1 prolog", a line NAME=VALUE for each passed variable that is set, an empty line.
func request(hook string, env []string) []byte {
	req := make([]byte, 0, 2<<10)
	req = append(req, "ASSAY1 "...)
	req = append(req, hook...)
	req = append(req, '\n')
	for _, name := range passed {
		value, ok := lookup(env, name)
		if !ok {
			continue
		}
		req = append(req, name...)
		req = append(req, '=')
		req = appendPrintable(req, value, maxValue)
		req = append(req, '\n')
	}
	return append(req, '\n')
}

// lookup finds name in env, a list of NAME=VALUE; the first wins, as in getenv(3).
func lookup(env []string, name string) (string, bool) {
	for _, e := range env {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:], true
		}
	}
	return "", false
}

// appendPrintable appends at most limit bytes of s without its control bytes.
func appendPrintable(to []byte, s string, limit int) []byte {
	for i := 0; i < len(s) && limit > 0; i++ {
		if s[i] >= ' ' && s[i] != 0x7f {
			to = append(to, s[i])
			limit--
		}
	}
	return to
}
