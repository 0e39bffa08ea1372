package main

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/assay-gpu/assay/cmd/assay-hook/slurmconf"
)

// confPlaces is where Slurm's daemons look, in their order; the last is a node's copy in a configless cluster.
func confPlaces() []string {
	if c := getenv("SLURM_CONF"); c != "" {
		return []string{c}
	}
	return []string{"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf"}
}

// selfTest reads slurm.conf, looks at what it names on this node, asks the agent, and prints all it finds.
func selfTest(args []string) int {
	var conf, slurm, node string
	askAgent := true
	for len(args) > 0 {
		name, value, given := strings.Cut(args[0], "=")
		args = args[1:]
		if name == "--no-agent" && !given {
			askAgent = false
			continue
		}
		if name == "--help" || name == "-h" {
			write(1, usage)
			return exitOK
		}
		to := map[string]*string{"--slurm-conf": &conf, "--slurm-version": &slurm, "--node": &node}[name]
		if to == nil {
			write(2, "assay-hook: self-test has no flag "+quote(name)+"\n"+usage)
			return exitUsage
		}
		if !given {
			if len(args) == 0 {
				write(2, "assay-hook: "+name+" needs a value\n"+usage)
				return exitUsage
			}
			value, args = args[0], args[1:]
		}
		*to = value
	}

	if slurm != "" && !isRelease(slurm) {
		write(2, "assay-hook: --slurm-version "+quote(slurm)+": want a release, as 22.05 or 23.11.4\n"+usage)
		return exitUsage
	}

	var fs []slurmconf.Finding
	if found := findConf(conf); found == "" {
		fs = append(fs, slurmconf.Finding{Level: slurmconf.Unknown, What: "slurm.conf", Why: "none found in " + strings.Join(confPlaces(), ", "), Do: "give --slurm-conf FILE"})
	} else if _, err := readConf(found); err != nil {
		// Nothing is known of a file that was not read; what an empty one lacks would be invented.
		fs = append(fs, slurmconf.Finding{Level: slurmconf.Unknown, What: "slurm.conf", Where: found, Why: "cannot be read: " + reason(err), Do: "give --slurm-conf FILE, as a user who may read it"})
	} else {
		c := slurmconf.Parse(found, readConf)
		if slurm == "" {
			slurm = slurmVersion()
		}
		write(1, "assay-hook "+version+" on "+clean(found, 256)+", Slurm "+clean(or(slurm, "of unknown version"), 64)+"\n")
		fs = slurmconf.Judge(c, slurm, files{})
	}
	if askAgent {
		fs = append(fs, agentAnswers(or(node, getenv("SLURMD_NODENAME"))))
	}
	return printFindings(fs)
}

// readConf reads a configuration file; a directory or a device is none.
func readConf(path string) ([]byte, error) {
	const most = 16 << 20
	data, st, err := readFile(path, most)
	if err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, syscall.EISDIR
	}
	return data, err
}

// isRelease reports whether s looks like a release of Slurm, as 22.05 or 23.11.4.
func isRelease(s string) bool {
	return s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789.") == ""
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// findConf returns the file that was asked for, or the first that is there.
func findConf(asked string) string {
	if asked != "" {
		return asked
	}
	for _, path := range confPlaces() {
		var st syscall.Stat_t
		if syscall.Stat(path, &st) == nil {
			return path
		}
	}
	return ""
}

// agentAnswers asks the agent for its status, as a hook would ask it.
func agentAnswers(node string) slurmconf.Finding {
	path := socketPath(runDir, node)
	f := slurmconf.Finding{What: "agent", Where: path}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		f.Level, f.Why, f.Do = slurmconf.Unknown, "no socket there ("+reason(err)+"), so hooks would pass unchecked", "start assay-agent on this node, or give --no-agent where none belongs"
		return f
	}
	env := environment()
	if node != "" {
		env = append([]string{"SLURMD_NODENAME=" + node}, env...)
	}
	began := now()
	a := ask(path, request("status", env), began+5*second)
	if a.err != "" {
		f.Level, f.Why, f.Do = slurmconf.Fault, a.err+", so hooks would pass unchecked", "systemctl status assay-agent"
		return f
	}
	f.Why = "answers in " + strconv.FormatInt((now()-began)/microsecond, 10) + " µs"
	if a.refused {
		f.Level, f.Why, f.Do = slurmconf.Fault, "answers that it is not well: "+a.message, "systemctl status assay-agent"
	}
	return f
}

// printFindings prints all findings and their count, and returns the exit status they ask for.
func printFindings(fs []slurmconf.Finding) int {
	var count [4]int
	var b strings.Builder
	for _, f := range fs {
		count[f.Level]++
		b.WriteString(pad(f.Level.String(), 9) + pad(clean(f.What, 64), 21) + clean(f.Why, 1<<10))
		if f.Where != "" {
			b.WriteString("  (" + clean(f.Where, 256) + ")")
		}
		if f.Do != "" {
			b.WriteString("\n" + pad("", 30) + "do: " + clean(f.Do, 1<<10))
		}
		b.WriteByte('\n')
	}
	n := func(l slurmconf.Level, one, many string) string {
		if count[l] == 1 {
			return "1 " + one
		}
		return strconv.Itoa(count[l]) + " " + many
	}
	b.WriteString(n(slurmconf.Fault, "fault", "faults") + ", " + n(slurmconf.Unknown, "unknown", "unknown") + ", " + n(slurmconf.Warning, "warning", "warnings") + "\n")
	write(1, b.String())
	switch slurmconf.Worst(fs) {
	case slurmconf.Fault:
		return exitRefused
	case slurmconf.Unknown:
		return exitUnknown
	}
	return exitOK
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-len(s), 1))
}
