// Command assay-hook is what slurmd runs as Prolog, Epilog and HealthCheckProgram. It asks the agent on its unix
// socket and passes the answer on; it judges nothing itself.
//
// Slurm gives a hook no arguments, so the name it is called by says which hook it is: prolog, epilog or
// healthcheck, or a name that ends so, as 00-assay-prolog in a directory of prologs. By hand:
// assay-hook prolog|epilog|healthcheck|self-test|version.
//
// A prolog that exits 1 drains its node and requeues its job, so 1 is returned only when the agent's first line is
// exactly "1". No agent, no answer in 19 s, or an answer that cannot be read is not evidence against the node: exit
// 0 with a message. Epilog and health check always exit 0.
//
// A hook runs on every node of every job, so the program imports neither os nor fmt nor net: their start alone costs
// a quarter of an empty Go program's. It uses package syscall and reads its own name from /proc.
package main

import (
	"strings"
	"syscall"
)

// Where things are. Variables, so that tests build with -ldflags "-X main.runDir=… -X main.etcDir=…".
var (
	runDir  = "/run/assay"
	etcDir  = "/etc/assay"
	version = "devel"
)

// Exit statuses. Only by hand can a usage error be made, so slurmd never sees exitUsage.
const (
	exitOK      = 0
	exitRefused = 1
	exitUnknown = 2
	exitUsage   = 64
)

// budget is what a hook may take in all. Slurm's own limits (PrologEpilogTimeout) must be longer: self-test looks.
const budget = 19 * second

const usage = `usage: assay-hook prolog|epilog|healthcheck
       assay-hook self-test [--slurm-conf FILE] [--slurm-version VERSION] [--node NAME] [--no-agent]
       assay-hook version

slurmd calls it as /usr/libexec/assay/prolog, epilog or healthcheck, without arguments.
self-test reads slurm.conf and says what would go wrong with assay's hooks, before it is put in force:

    assay-hook self-test --slurm-conf /etc/slurm/slurm.conf.new

exit status: 0 pass, 1 refused or fault found, 2 unknown, 64 usage
`

func main() {
	start := now()
	args := arguments()
	syscall.Exit(run(args, start))
}

// run decides by name and arguments what is wanted and returns the exit status.
func run(args []string, start int64) int {
	var called string
	if len(args) > 0 {
		called = args[0]
	}
	if len(args) < 2 {
		if h := hookNamed(called); h != "" {
			return runHook(h, start+budget)
		}
		// An unforeseen name under slurmd must not drain the node; Slurm says itself which script it runs.
		switch context := getenv("SLURM_SCRIPT_CONTEXT"); {
		case strings.HasPrefix(context, "prolog"):
			return runHook("prolog", start+budget)
		case strings.HasPrefix(context, "epilog"):
			return runHook("epilog", start+budget)
		case getenv("SLURMD_NODENAME") != "" || getenv("SLURM_JOB_ID") != "":
			say("called by Slurm as " + clean(called, 256) + ", which names no hook: nothing was checked")
			return exitOK
		}
		write(2, usage)
		return exitUsage
	}
	switch args[1] {
	case "prolog", "epilog", "healthcheck":
		if len(args) == 2 {
			return runHook(args[1], start+budget)
		}
	case "self-test":
		return selfTest(args[2:])
	case "version", "--version":
		if len(args) == 2 {
			write(1, "assay-hook "+version+"\n")
			return exitOK
		}
	case "help", "-h", "--help":
		write(1, usage)
		return exitOK
	}
	write(2, "assay-hook: cannot make sense of "+quote(strings.Join(args[1:], " "))+"\n"+usage)
	return exitUsage
}

// hookNamed returns the hook that a program called by path is, or "".
func hookNamed(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	name = strings.TrimSuffix(name, ".sh")
	for _, h := range [...]string{"prolog", "epilog", "healthcheck"} {
		if rest, ok := strings.CutSuffix(name, h); ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], "-_.")) {
			return h
		}
	}
	return ""
}

// runHook asks the agent and returns the hook's exit status: 1 only from a prolog.
func runHook(hook string, deadline int64) int {
	if message, on := bypass(etcDir + "/bypass"); on {
		say(message)
		return exitOK
	} else if message != "" {
		say(message)
	}
	a := ask(socketPath(runDir, getenv("SLURMD_NODENAME")), request(hook, environment()), deadline)
	if a.err != "" {
		say(a.err + ": nothing was checked, " + hook + " passes")
		return exitOK
	}
	if a.message != "" {
		say(a.message)
	}
	if a.refused && hook == "prolog" {
		return exitRefused
	}
	return exitOK
}
