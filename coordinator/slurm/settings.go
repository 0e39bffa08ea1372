package slurm

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MinResumeTimeout is the least ResumeTimeout with which assay lets Slurm reboot a node: a GPU server takes ten minutes and
// more to come back, and Slurm's default of 60 s would set it DOWN on the way. Source: DESIGN, section 5.
const MinResumeTimeout = 1800 * time.Second

// Settings are the values of slurm.conf, as slurmctld runs with them, that assay's safety rests on.
type Settings struct {
	Version             string
	ClusterName         string
	ResumeTimeout       time.Duration
	SlurmdTimeout       time.Duration
	MessageTimeout      time.Duration
	PrologTimeout       time.Duration // 0: none
	PrologFlags         []string
	SchedulerParameters []string
	Prolog, Epilog      string
	RebootProgram       string
	HealthCheckProgram  string
	ReturnToService     int
	TopologyPlugin      string
	SlurmUser           string
}

// HoldsOnPrologFail reports whether a batch job whose prolog failed is held. Without nohold_on_prolog_fail it is.
func (s Settings) HoldsOnPrologFail() bool {
	return !slices.Contains(s.SchedulerParameters, "nohold_on_prolog_fail")
}

// Settings reads the running configuration.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	out, err := c.read(ctx, "config", c.cfg.Scontrol, "show", "config")
	if err != nil {
		return Settings{}, err
	}
	return ParseSettings(out)
}

// ParseSettings reads `scontrol show config`: "Name = value" lines, of which the first of a name counts.
func ParseSettings(out string) (Settings, error) {
	v := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, seen := v[name]; ok && !seen {
			v[name] = null(strings.TrimSpace(value))
		}
	}
	if v["SLURM_VERSION"] == "" || v["ResumeTimeout"] == "" {
		return Settings{}, &FormatError{Verb: "config", Line: out, Msg: "no SLURM_VERSION or no ResumeTimeout"}
	}
	s := Settings{
		Version: v["SLURM_VERSION"], ClusterName: v["ClusterName"],
		ResumeTimeout: seconds(v["ResumeTimeout"]), SlurmdTimeout: seconds(v["SlurmdTimeout"]), MessageTimeout: seconds(v["MessageTimeout"]),
		PrologTimeout: seconds(v["PrologEpilogTimeout"]), PrologFlags: list(v["PrologFlags"]), SchedulerParameters: list(v["SchedulerParameters"]),
		Prolog: v["Prolog"], Epilog: v["Epilog"], RebootProgram: v["RebootProgram"], HealthCheckProgram: v["HealthCheckProgram"],
		TopologyPlugin: v["TopologyPlugin"],
	}
	if p, ok := v["PrologTimeout"]; ok {
		s.PrologTimeout = seconds(p)
	}
	s.ReturnToService, _ = strconv.Atoi(v["ReturnToService"])
	s.SlurmUser, _, _ = strings.Cut(v["SlurmUser"], "(")
	return s, nil
}

// seconds reads "1800 sec". 65534, Slurm's NO_VAL16, is how 22.05 prints that there is none.
func seconds(s string) time.Duration {
	s, _, _ = strings.Cut(s, " ")
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 65534 {
		return 0
	}
	return time.Duration(n) * time.Second
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
