package slurmconf

import (
	"strconv"
	"strings"
)

// A Level says how bad a finding is. The order is the order of severity.
type Level int

const (
	OK Level = iota
	Warning
	Unknown
	Fault
)

func (l Level) String() string { return [...]string{"ok", "warning", "unknown", "FAULT"}[l] }

// A Finding is one thing looked at: what, where, why it matters, and what to do.
type Finding struct {
	Level Level
	What  string // the setting
	Where string // file:line; "" when it is not set
	Why   string
	Do    string // "" when nothing is to be done
}

// A File is what must be known of a script.
type File struct {
	Regular    bool
	Executable bool
	Loose      bool // its owner is not root, or group or others may write to it
	Ours       bool // assay's hook, or a script that calls it
}

// A System answers for the node's files.
type System interface {
	Stat(path string) (f File, ok bool)
	Glob(pattern string) []string // sorted; names that begin with a dot do not match a wildcard
}

// Limits in seconds. HookSeconds is the hook's hard limit (DESIGN 5). MinResume is what a reboot of a GPU server may
// take: assay refuses to reboot where ResumeTimeout is less.
const (
	HookSeconds = 20
	MinResume   = 1800
)

type judge struct {
	c   Config
	sys System
	out []Finding
}

// Judge looks at all that assay's hooks need of slurm.conf. version is Slurm's, as "22.05.8"; "" when not known.
func Judge(c Config, version string, sys System) []Finding {
	j := &judge{c: c, sys: sys}
	for _, p := range c.Problems {
		where := p.File
		if p.Line > 0 {
			where += ":" + strconv.Itoa(p.Line)
		}
		j.add(Fault, "slurm.conf", where, p.Text, "correct the line: Slurm's daemons do not start with it, or read something else than is meant")
	}
	j.prologFlags(version)
	j.noHold()
	j.hookTimeouts()
	j.atLeast(Warning, "BatchStartTimeout", 10, HookSeconds+5,
		"a batch job that has not started by then counts as missing, and a prolog may take 20 s before it", "set BatchStartTimeout=60")
	j.atLeast(Warning, "MessageTimeout", 10, HookSeconds+3,
		`users are told "Prolog hung on node" 2 s before it ends, though a full check may take 20 s`, "set MessageTimeout=30")
	j.scripts("Prolog", Fault)
	j.scripts("Epilog", Warning)
	j.healthCheck()
	j.reboot()
	j.returnToService()
	j.slurmdUser()
	return j.out
}

// Worst is the severest level among fs, OK for none.
func Worst(fs []Finding) Level {
	worst := OK
	for _, f := range fs {
		worst = max(worst, f.Level)
	}
	return worst
}

func (j *judge) add(l Level, what, where, why, do string) {
	j.out = append(j.out, Finding{l, what, where, why, do})
}

// flagSince returns the release that a PrologFlags flag came with, "" for one that 22.05 has. A flag its daemons do
// not know stops them ("PrologFlags invalid"). A function, not a map: a map would be filled at every start of the hook.
func flagSince(flag string) (since string, known bool) {
	switch flag {
	case "alloc", "contain", "deferbatch", "nohold", "serial", "x11":
		return "", true
	case "forcerequeueonfail":
		return "23.02", true
	case "runinjob":
		return "24.05", true
	}
	return "", false
}

func (j *judge) prologFlags(version string) {
	v, _ := j.c.Get("PrologFlags")
	has, before := map[string]bool{}, len(j.out)
	for flag := range strings.SplitSeq(v.Text, ",") {
		flag = strings.ToLower(strings.TrimSpace(flag))
		if flag == "" {
			continue
		}
		has[flag] = true
		since, known := flagSince(flag)
		switch {
		case !known:
			j.add(Unknown, "PrologFlags", v.Where(), "the flag "+flag+" is not known here", "see slurm.conf(5) of the Slurm in use")
		case since != "" && version == "":
			j.add(Unknown, "PrologFlags", v.Where(), flag+" needs Slurm "+since+", and which Slurm this is for is not known", "give --slurm-version")
		case since != "" && older(version, since):
			j.add(Fault, "PrologFlags", v.Where(), "Slurm "+version+" does not know "+flag+", which came with "+since+": its daemons and commands stop at it", "remove "+flag)
		}
	}
	switch {
	case has["nohold"] && (has["contain"] || has["x11"] || has["runinjob"]):
		j.add(Fault, "PrologFlags", v.Where(), "NoHold cannot stand beside Contain, X11 or RunInJob: slurmctld stops", "remove NoHold")
	case has["nohold"]:
		j.add(Warning, "PrologFlags", v.Where(), "with NoHold salloc and srun do not wait for the prologs, so users see a node before it is checked", "remove NoHold")
	}
	if has["serial"] {
		j.add(Warning, "PrologFlags", v.Where(), "with Serial prologs on one node wait for each other, so one that takes 20 s delays all behind it", "remove Serial")
	}
	// Contain, X11, ForceRequeueOnFail and RunInJob set Alloc themselves.
	if has["alloc"] || has["contain"] || has["x11"] || has["runinjob"] || has["forcerequeueonfail"] {
		if Worst(j.out[before:]) > Warning {
			return
		}
		j.add(OK, "PrologFlags", v.Where(), v.Text+": prologs run on every node as soon as a job is given it", "")
	} else {
		j.add(Fault, "PrologFlags", v.Where(), "without Alloc a prolog runs at a node's first job step, and never for a bare salloc", "set PrologFlags=Alloc")
	}
}

func (j *judge) noHold() {
	v, _ := j.c.Get("SchedulerParameters")
	for p := range strings.SplitSeq(v.Text, ",") {
		if strings.EqualFold(strings.TrimSpace(p), "nohold_on_prolog_fail") {
			j.add(OK, "SchedulerParameters", v.Where(), "nohold_on_prolog_fail: a job whose prolog fails starts elsewhere at once", "")
			return
		}
	}
	j.add(Warning, "SchedulerParameters", v.Where(), `without nohold_on_prolog_fail one failing prolog leaves the whole job held ("launch failed requeued held"); assayd releases such a job, twice at most`,
		"add nohold_on_prolog_fail to SchedulerParameters")
}

func (j *judge) hookTimeouts() {
	set := false
	for _, key := range [...]string{"PrologEpilogTimeout", "PrologTimeout", "EpilogTimeout"} {
		if _, ok := j.c.Get(key); ok {
			set = true
			j.atLeast(Fault, key, 0, HookSeconds+5, "Slurm kills a hook that takes longer and drains the node with a reason that is not ours; a hook may take 20 s", "set "+key+"=60, or remove the line")
		}
	}
	if !set {
		j.add(OK, "PrologEpilogTimeout", "", "not set: Slurm waits for a hook, and assay's ends by itself within 20 s", "")
	}
}

// atLeast adds a finding on a number of seconds that must be min or more; unset is what Slurm takes without it.
func (j *judge) atLeast(l Level, key string, unset, min int, why, do string) {
	v, ok := j.c.Get(key)
	n, from := unset, " by default"
	if ok {
		var err error
		if n, err = strconv.Atoi(v.Text); err != nil || n < 0 {
			j.add(Fault, key, v.Where(), clip(v.Text)+" is no number of seconds", do)
			return
		}
		from = ""
	}
	if n < min {
		j.add(l, key, v.Where(), strconv.Itoa(n)+" s"+from+", less than "+strconv.Itoa(min)+": "+why, do)
		return
	}
	j.add(OK, key, v.Where(), strconv.Itoa(n)+" s"+from, "")
}

func (j *judge) healthCheck() {
	v, ok := j.c.Get("HealthCheckProgram")
	if !ok {
		j.add(Warning, "HealthCheckProgram", "", "not set: a node is not looked at when slurmd starts, before it takes jobs", "set HealthCheckProgram=/usr/libexec/assay/healthcheck and HealthCheckInterval=300")
		return
	}
	j.script("HealthCheckProgram", v, v.Text, Fault)
	if i, _ := j.c.Get("HealthCheckInterval"); i.Text == "" || i.Text == "0" {
		j.add(Warning, "HealthCheckInterval", i.Where(), "0: the health check runs only when slurmd starts", "set HealthCheckInterval=300")
	} else if _, err := strconv.ParseUint(i.Text, 10, 16); err != nil {
		j.add(Fault, "HealthCheckInterval", i.Where(), clip(i.Text)+" is no number of seconds", "set HealthCheckInterval=300")
	} else {
		j.add(OK, "HealthCheckInterval", i.Where(), i.Text+" s", "")
	}
}

func (j *judge) reboot() {
	v, ok := j.c.Get("RebootProgram")
	if !ok {
		j.add(Warning, "RebootProgram", "", "not set: scontrol reboot does nothing, so a case whose next step is a reboot waits for a person", "set RebootProgram, for instance to /usr/sbin/reboot")
	} else {
		// Arguments may follow the path.
		program, _, _ := strings.Cut(v.Text, " ")
		j.script("RebootProgram", v, program, Fault)
	}
	j.atLeast(Fault, "ResumeTimeout", 60, MinResume, "a node that is not back by then is set DOWN, and a GPU server takes longer to start; assay refuses to reboot under it", "set ResumeTimeout=1800")
}

func (j *judge) returnToService() {
	v, ok := j.c.Get("ReturnToService")
	switch {
	case !ok || v.Text == "0":
		j.add(Warning, "ReturnToService", v.Where(), "0: a node that was silent for a moment stays DOWN until a person resumes it", "set ReturnToService=1, or 2 for nodes that rebooted unexpectedly too; assay checks them either way, as a certificate ends with the boot")
	case v.Text == "1" || v.Text == "2":
		j.add(OK, "ReturnToService", v.Where(), v.Text, "")
	default:
		j.add(Fault, "ReturnToService", v.Where(), clip(v.Text)+" is none of 0, 1, 2", "set ReturnToService=1")
	}
}

func (j *judge) slurmdUser() {
	if v, ok := j.c.Get("SlurmdUser"); ok && v.Text != "root" && v.Text != "root(0)" {
		j.add(Fault, "SlurmdUser", v.Where(), "hooks run as "+clip(v.Text)+", and the agent answers root", "remove SlurmdUser: the default is root")
	}
}

// older reports whether Slurm release a, as 22.05.8, is before release b, as 23.02.
func older(a, b string) bool {
	for range 2 {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		if m != n {
			return m < n
		}
	}
	return false
}
