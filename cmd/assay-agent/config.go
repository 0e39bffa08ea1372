package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-gpu/assay/agent/identity"
	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/strictyaml"
	"github.com/assay-gpu/assay/coordinator/authority"
)

// defaultConfig is read when it is there; a file named with --config must be.
const defaultConfig = "/etc/assay/agent.yaml"

// A config is agent.yaml. Flags of the same names, with - for _, stand above it.
type config struct {
	Node          string          `yaml:"node"`
	RunDir        string          `yaml:"run_dir"`
	StateDir      string          `yaml:"state_dir"`
	Kmsg          string          `yaml:"kmsg"`
	Sysfs         string          `yaml:"sysfs"`
	Proc          string          `yaml:"proc"`
	BootID        string          `yaml:"boot_id"`
	NVMLLibrary   string          `yaml:"nvml_library"`
	CUDALibrary   string          `yaml:"cuda_library"`
	DCGMLibrary   string          `yaml:"dcgm_library"`
	Dcgmi         string          `yaml:"dcgmi"`
	MetricsListen string          `yaml:"metrics_listen"`
	RebootCommand string          `yaml:"reboot_command"`
	ResetCommand  string          `yaml:"reset_command"`
	ReportCommand string          `yaml:"report_command"`
	Socket        string          `yaml:"socket"`
	Sim           string          `yaml:"sim"`
	Interval      policy.Duration `yaml:"interval"`
	LogLevel      string          `yaml:"log_level"`

	nodeGiven bool   // by flag or file: the socket is then named after it
	calls     string // a simulated node's answers to system calls
}

func defaults() config {
	return config{
		RunDir: "/run/assay", StateDir: "/var/lib/assay/agent", Kmsg: "/dev/kmsg", Sysfs: "/sys", Proc: "/proc", BootID: "/proc/sys/kernel/random/boot_id",
		NVMLLibrary: "libnvidia-ml.so.1", CUDALibrary: "libcuda.so.1", DCGMLibrary: "libdcgm.so.4", Dcgmi: "dcgmi", RebootCommand: "systemctl reboot", ResetCommand: "nvidia-smi --gpu-reset -i {uuid}", ReportCommand: "nvidia-bug-report.sh --safe-mode --output-file {file}", LogLevel: "info",
	}
}

// A configFlags holds the flags of a command that reads the configuration.
type configFlags struct {
	file string
	flag config
	set  *pflag.FlagSet
}

// hardwareFlags adds the flags that say where the hardware is read and state is kept.
func hardwareFlags(c *cobra.Command) *configFlags {
	d := defaults()
	f := &configFlags{set: c.Flags()}
	f.set.StringVar(&f.file, "config", "", "configuration `FILE` (default "+defaultConfig+", if it is there)")
	f.set.StringVar(&f.flag.Node, "node", "", "this node's `NAME` (default: as enrolled, else as --sim has it, else $SLURMD_NODENAME, else the host name)")
	f.set.StringVar(&f.flag.RunDir, "run-dir", d.RunDir, "sockets and what holds for one boot: `DIR`")
	f.set.StringVar(&f.flag.StateDir, "state-dir", d.StateDir, "identity, certificate, spool and evidence: `DIR`")
	f.set.StringVar(&f.flag.Kmsg, "kmsg", d.Kmsg, "kernel log `FILE`")
	f.set.StringVar(&f.flag.Sysfs, "sysfs", d.Sysfs, "sysfs `DIR`")
	f.set.StringVar(&f.flag.Proc, "proc", d.Proc, "procfs `DIR`")
	f.set.StringVar(&f.flag.BootID, "boot-id", d.BootID, "boot id `FILE`")
	f.set.StringVar(&f.flag.NVMLLibrary, "nvml-library", d.NVMLLibrary, "NVML library to load: `NAME` or path")
	f.set.StringVar(&f.flag.CUDALibrary, "cuda-library", d.CUDALibrary, "CUDA driver library to load: `NAME` or path")
	f.set.StringVar(&f.flag.DCGMLibrary, "dcgm-library", d.DCGMLibrary, "DCGM library to load: `NAME` or path")
	f.set.StringVar(&f.flag.Dcgmi, "dcgmi", d.Dcgmi, "DCGM's command line: `NAME` or path")
	f.set.StringVar(&f.flag.Sim, "sim", "", "read the simulated node in `DIR` instead of this machine")
	return f
}

// daemonFlags adds the flags of the daemon alone.
func (f *configFlags) daemonFlags() {
	d := defaults()
	f.set.StringVar(&f.flag.MetricsListen, "metrics-listen", "", "serve Prometheus metrics on `ADDR`, such as 127.0.0.1:9420 (default: not at all)")
	f.set.StringVar(&f.flag.RebootCommand, "reboot-command", d.RebootCommand, "`COMMAND` that reboots the node when the control plane asks")
	f.set.StringVar(&f.flag.ResetCommand, "reset-command", d.ResetCommand, "`COMMAND` that resets one GPU; {uuid} and {node} are filled in")
	f.set.StringVar(&f.flag.ReportCommand, "report-command", d.ReportCommand, "`COMMAND` that writes the driver's report to {file}, for a case's evidence, if it is there; empty: none")
	f.set.StringVar(&f.flag.Socket, "socket", "", "socket `PATH` for the hooks (default RUN_DIR/NODE.sock if --node is given, and RUN_DIR/agent.sock if it is free)")
	f.set.DurationVar((*time.Duration)(&f.flag.Interval), "interval", 0, "time between background cycles (default: the policy's)")
	f.set.StringVar(&f.flag.LogLevel, "log-level", d.LogLevel, "debug, info, warn or error")
}

// load reads the file, lays the flags over it and checks the whole. It reports every fault at once.
func (f *configFlags) load() (config, error) {
	c := defaults()
	file := f.file
	if file == "" {
		file = defaultConfig
	}
	var faults []error
	inFile := &strictyaml.Error{File: file}
	var lines strictyaml.Lines
	data, err := os.ReadFile(file)
	switch {
	case err == nil:
		var err error
		if lines, err = strictyaml.DecodeWithLines(file, data, &c); err != nil && !errors.As(err, &inFile) {
			faults = append(faults, err)
		}
	case f.file != "" || !errors.Is(err, fs.ErrNotExist):
		faults = append(faults, err)
	}
	c.nodeGiven = c.Node != ""
	for _, o := range []struct {
		flag     string
		to, from *string
	}{
		{"node", &c.Node, &f.flag.Node}, {"run-dir", &c.RunDir, &f.flag.RunDir}, {"state-dir", &c.StateDir, &f.flag.StateDir},
		{"kmsg", &c.Kmsg, &f.flag.Kmsg}, {"sysfs", &c.Sysfs, &f.flag.Sysfs}, {"proc", &c.Proc, &f.flag.Proc}, {"boot-id", &c.BootID, &f.flag.BootID},
		{"nvml-library", &c.NVMLLibrary, &f.flag.NVMLLibrary}, {"cuda-library", &c.CUDALibrary, &f.flag.CUDALibrary}, {"dcgm-library", &c.DCGMLibrary, &f.flag.DCGMLibrary}, {"dcgmi", &c.Dcgmi, &f.flag.Dcgmi}, {"sim", &c.Sim, &f.flag.Sim}, {"metrics-listen", &c.MetricsListen, &f.flag.MetricsListen},
		{"reboot-command", &c.RebootCommand, &f.flag.RebootCommand}, {"reset-command", &c.ResetCommand, &f.flag.ResetCommand}, {"report-command", &c.ReportCommand, &f.flag.ReportCommand},
		{"socket", &c.Socket, &f.flag.Socket}, {"log-level", &c.LogLevel, &f.flag.LogLevel},
	} {
		if f.set.Changed(o.flag) {
			*o.to = *o.from
		}
	}
	if f.set.Changed("interval") {
		c.Interval = f.flag.Interval
	}
	c.nodeGiven = c.nodeGiven || f.set.Changed("node")
	c.simulate(f.set.Changed)
	for _, x := range c.check() {
		line, col := lines.At(strings.ReplaceAll(x.flag, "-", "_"))
		if line == 0 || f.set.Changed(x.flag) {
			faults = append(faults, x.err)
			continue
		}
		inFile.Add(line, col, "", "%v", x.err)
	}
	if err := inFile.Err(); err != nil {
		faults = append([]error{err}, faults...)
	}
	if len(faults) > 0 {
		return c, usage(errors.Join(faults...))
	}
	if c.Node == "" {
		c.Node = nodeName(c.StateDir, c.Sim)
	}
	return c, nil
}

// nodeName is the node's name when none was given.
func nodeName(stateDir, simDir string) string {
	if id, err := identity.Load(stateDir); err == nil && id.Node != "" {
		return id.Node
	}
	if simDir != "" {
		if s, err := sim.Read(simDir); err == nil && authority.ValidName(s.Node) {
			return s.Node
		}
	}
	if n := os.Getenv("SLURMD_NODENAME"); authority.ValidName(n) {
		return n
	}
	if h, err := os.Hostname(); err == nil {
		h, _, _ = strings.Cut(h, ".")
		if authority.ValidName(h) {
			return h
		}
	}
	return "localhost"
}

// A fault is what is wrong with the value of a flag, or of the file's line of the same name.
type fault struct {
	flag string
	err  error
}

// check returns every fault of the configuration.
func (c config) check() []fault {
	var faults []fault
	add := func(flag, format string, args ...any) {
		faults = append(faults, fault{flag, fmt.Errorf(flag+" "+format, args...)})
	}
	if c.Node != "" && !authority.ValidName(c.Node) {
		add("node", "%q: want letters, digits, dot, dash and underscore", c.Node)
	}
	for _, p := range []struct{ name, path string }{{"run-dir", c.RunDir}, {"state-dir", c.StateDir}} {
		if !filepath.IsAbs(p.path) {
			add(p.name, "%q: want an absolute path", p.path)
		}
	}
	if sameFolder(c.RunDir, c.StateDir) {
		add("state-dir", "%q: want another folder than run-dir: what is in that one does not outlive the boot", c.StateDir)
	}
	if c.Sim != "" {
		if _, err := os.Stat(filepath.Join(c.Sim, "state.json")); err != nil {
			add("sim", "%q: not a simulated node (assay-agent sim init makes one): %w", c.Sim, err)
		}
	}
	if c.MetricsListen != "" {
		if _, _, err := net.SplitHostPort(c.MetricsListen); err != nil {
			add("metrics-listen", "%q: want HOST:PORT", c.MetricsListen)
		}
	}
	if c.Interval < 0 || c.Interval > 0 && c.Interval.D() < 10*time.Millisecond {
		add("interval", "%s: want 10ms or more", c.Interval.D())
	}
	if _, ok := levels[c.LogLevel]; !ok {
		add("log-level", "%q: want debug, info, warn or error", c.LogLevel)
	}
	return faults
}

// sameFolder reports whether two paths name one folder, by a link too.
func sameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
