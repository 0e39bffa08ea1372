package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
	"github.com/assay-gpu/assay/checks/strictyaml"
	"github.com/assay-gpu/assay/coordinator/authority"
)

// A config is everything `assayd serve` can be told, in its file or by flags; a flag wins.
type config struct {
	StateDir        string          `yaml:"state_dir"`      // embedded etcd and nothing else; 0700
	Listen          string          `yaml:"listen"`         // host:port of the API
	Advertise       string          `yaml:"advertise"`      // URL at which agents and operators reach this process
	Peers           []string        `yaml:"peers"`          // URLs of the other control hosts, which agents are told at enrolment
	Socket          string          `yaml:"socket"`         // unix socket for operators of this host
	Name            string          `yaml:"name"`           // of this process among its peers
	Fleet           string          `yaml:"fleet"`          // of the fleet, in its certificate authority
	EtcdEndpoints   []string        `yaml:"etcd_endpoints"` // empty: embedded
	EtcdPeer        string          `yaml:"etcd_peer"`      // URL at which the embedded etcd of other control hosts reaches this one's; empty: there are none
	EtcdCA          string          `yaml:"etcd_ca"`        // PEM files for an external etcd with TLS
	EtcdCert        string          `yaml:"etcd_cert"`
	EtcdKey         string          `yaml:"etcd_key"`
	Policy          string          `yaml:"policy"`           // file; in force when etcd holds none, and again on SIGHUP when it changed
	WorkloadManager string          `yaml:"workload_manager"` // slurm, none, or auto: slurm where scontrol is found
	Scontrol        string          `yaml:"scontrol"`
	Squeue          string          `yaml:"squeue"`
	Topology        string          `yaml:"topology"`       // topology.conf for the built-in scheduler; empty: leaves as enrolment named them
	SlurmConf       string          `yaml:"slurm_conf"`     // SLURM_CONF for scontrol; empty: as inherited
	SlurmDeadline   policy.Duration `yaml:"slurm_deadline"` // for one scontrol call
	Lease           policy.Duration `yaml:"lease"`          // how long a dead leader keeps others out
	PageWebhook     string          `yaml:"page_webhook"`   // URL; gets a POST with JSON for every page
	PowerCycle      []string        `yaml:"power_cycle"`    // command and arguments; the node's name is appended
	RMAWebhook      string          `yaml:"rma_webhook"`    // URL; gets a POST with JSON for every change of an RMA ticket
	RMAHook         []string        `yaml:"rma_hook"`       // command and arguments; gets the ticket as JSON on standard input
	LogLevel        string          `yaml:"log_level"`      // debug, info, warn, error
	LogFormat       string          `yaml:"log_format"`     // text, json
}

// defaults are the values of a config that says nothing.
func defaults() config {
	host, err := os.Hostname()
	if err != nil {
		host = "assayd"
	}
	return config{
		StateDir: "/var/lib/assay/assayd", Listen: ":7420", Socket: "/run/assay/assayd.sock", Name: host, Fleet: "assay",
		WorkloadManager: "auto", Scontrol: "scontrol", Squeue: "squeue", SlurmDeadline: policy.Duration(10 * time.Second),
		Lease: policy.Duration(4 * time.Second), LogLevel: "info", LogFormat: "text",
	}
}

// bind makes a flag for every field. The flags' defaults are the built-in ones; load applies file and flags in order.
func (c *config) bind(fs *pflag.FlagSet) {
	fs.StringVar(&c.StateDir, "state-dir", c.StateDir, "directory of the embedded etcd")
	fs.StringVar(&c.Listen, "listen", c.Listen, "host:port of the API")
	fs.StringVar(&c.Advertise, "advertise", c.Advertise, "URL at which agents reach this process (default https://HOSTNAME:PORT)")
	fs.StringSliceVar(&c.Peers, "peers", c.Peers, "URLs of the other control hosts, told to agents at enrolment; the same list with this host's own is fine")
	fs.StringVar(&c.Socket, "socket", c.Socket, "unix socket for operators of this host")
	fs.StringVar(&c.Name, "name", c.Name, "name of this process among its peers")
	fs.StringVar(&c.Fleet, "fleet", c.Fleet, "name of the fleet, in its certificate authority")
	fs.StringSliceVar(&c.EtcdEndpoints, "etcd-endpoints", c.EtcdEndpoints, "client URLs of an external etcd (default: embedded)")
	fs.StringVar(&c.EtcdPeer, "etcd-peer", c.EtcdPeer, "https URL at which other control hosts' embedded etcd reaches this one's (default: none does, and no port is open)")
	fs.StringVar(&c.EtcdCA, "etcd-ca", c.EtcdCA, "PEM file with the authority of an external etcd")
	fs.StringVar(&c.EtcdCert, "etcd-cert", c.EtcdCert, "PEM file with this process's certificate for an external etcd")
	fs.StringVar(&c.EtcdKey, "etcd-key", c.EtcdKey, "PEM file with its key")
	fs.StringVar(&c.Policy, "policy", c.Policy, "policy file, put in force when etcd holds none and on SIGHUP when it changed")
	fs.StringVar(&c.WorkloadManager, "workload-manager", c.WorkloadManager, "slurm, none, or auto: slurm where scontrol is found")
	fs.StringVar(&c.Topology, "topology", c.Topology, "topology.conf for the built-in scheduler (default: leaves as enrolment named them)")
	fs.StringVar(&c.Scontrol, "scontrol", c.Scontrol, "scontrol program")
	fs.StringVar(&c.Squeue, "squeue", c.Squeue, "squeue program")
	fs.StringVar(&c.SlurmConf, "slurm-conf", c.SlurmConf, "SLURM_CONF for scontrol and squeue")
	fs.Var(durationFlag{&c.SlurmDeadline}, "slurm-deadline", "time for one scontrol call")
	fs.Var(durationFlag{&c.Lease}, "lease", "how long a dead leader keeps others out")
	fs.StringVar(&c.PageWebhook, "page-webhook", c.PageWebhook, "URL that gets a POST for every page")
	fs.StringSliceVar(&c.PowerCycle, "power-cycle", c.PowerCycle, "command that power-cycles the node named by its last argument")
	fs.StringVar(&c.RMAWebhook, "rma-webhook", c.RMAWebhook, "URL that gets a POST for every change of an RMA ticket")
	fs.StringSliceVar(&c.RMAHook, "rma-hook", c.RMAHook, "command that gets every changed RMA ticket as JSON on standard input")
	fs.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
}

type durationFlag struct{ d *policy.Duration }

func (f durationFlag) String() string {
	if f.d == nil {
		return ""
	}
	return f.d.D().String()
}
func (f durationFlag) Set(s string) error { return f.d.UnmarshalText([]byte(s)) }
func (f durationFlag) Type() string       { return "duration" }

// load reads the file, lays the flags that were given over it, fills in what follows from the rest, and reports every
// fault at once.
func load(file string, fs *pflag.FlagSet) (config, error) {
	c := defaults()
	faults := &strictyaml.Error{File: cmp.Or(file, "command line")}
	lines := strictyaml.Lines{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return c, usageError{err}
		}
		lines, err = strictyaml.DecodeWithLines(file, data, &c)
		if err != nil && !errors.As(err, &faults) {
			return c, usageError{err}
		}
	}
	over := pflag.NewFlagSet("over", pflag.ContinueOnError)
	c.bind(over)
	fs.Visit(func(f *pflag.Flag) {
		to := over.Lookup(f.Name)
		if to == nil {
			return
		}
		var err error
		if from, ok := f.Value.(pflag.SliceValue); ok {
			err = to.Value.(pflag.SliceValue).Replace(from.GetSlice())
		} else {
			err = to.Value.Set(f.Value.String())
		}
		if err != nil {
			faults.Add(0, 0, "--"+f.Name, "%v", err)
		}
	})
	c.complete(faults, lines)
	_, perr := c.readPolicy()
	if err := errors.Join(faults.Err(), perr); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// complete fills in what follows from the rest and checks the whole.
func (c *config) complete(faults *strictyaml.Error, lines strictyaml.Lines) {
	add := func(path, format string, args ...any) {
		if line, col := lines.At(path); line > 0 {
			faults.Add(line, col, path, format, args...)
			return
		}
		faults.Add(0, 0, "--"+strings.ReplaceAll(path, "_", "-"), format, args...)
	}
	if !filepath.IsAbs(c.StateDir) {
		add("state_dir", "%q: want an absolute path", c.StateDir)
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		add("listen", "%v; write it as host:port, such as :7420", err)
	} else if c.Advertise == "" {
		if host == "" || host == "0.0.0.0" || host == "::" {
			host, _ = os.Hostname()
		}
		c.Advertise = "https://" + net.JoinHostPort(host, port)
	}
	if u, err := url.Parse(c.Advertise); err != nil || c.Advertise != "" && (u.Scheme != "https" || u.Host == "") {
		add("advertise", "%q: want an https URL with a host", c.Advertise)
	}
	for i, p := range c.Peers {
		if u, err := url.Parse(p); err != nil || u.Scheme != "https" || u.Host == "" {
			add(fmt.Sprintf("peers[%d]", i), "%q: want an https URL with a host", p)
		}
	}
	for i, e := range c.EtcdEndpoints {
		if u, err := url.Parse(e); err != nil || u.Host == "" && u.Path == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "unix" {
			add(fmt.Sprintf("etcd_endpoints[%d]", i), "%q: want a URL such as https://host:2379", e)
		}
	}
	c.completePeer(add)
	switch c.WorkloadManager {
	case "slurm", "none":
	case "auto":
		c.WorkloadManager = "none"
		if _, err := exec.LookPath(c.Scontrol); err == nil {
			c.WorkloadManager = "slurm"
		}
	default:
		add("workload_manager", "%q: want slurm, none or auto", c.WorkloadManager)
	}
	if c.Lease.D() < 3*time.Second {
		add("lease", "%s: want 3s or more; etcd gives no shorter lease", c.Lease.D())
	}
	if c.SlurmDeadline.D() < time.Second {
		add("slurm_deadline", "%s: want 1s or more", c.SlurmDeadline.D())
	}
	for _, w := range []struct{ name, url string }{{"page_webhook", c.PageWebhook}, {"rma_webhook", c.RMAWebhook}} {
		if u, err := url.Parse(w.url); w.url != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			add(w.name, "%q: want an http or https URL", w.url)
		}
	}
	if _, err := logLevel(c.LogLevel); err != nil {
		add("log_level", "%v", err)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		add("log_format", "%q: want text or json", c.LogFormat)
	}
}

// completePeer checks what makes this host's embedded etcd one of several.
func (c *config) completePeer(add func(path, format string, args ...any)) {
	if c.EtcdPeer == "" {
		return
	}
	if u, err := url.Parse(c.EtcdPeer); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.Path != "" {
		add("etcd_peer", "%q: want https://HOST:PORT, such as https://ctl1:7421", c.EtcdPeer)
	}
	if len(c.EtcdEndpoints) > 0 {
		add("etcd_peer", "%q: with etcd_endpoints there is no embedded etcd to reach", c.EtcdPeer)
	}
	if !authority.ValidName(c.Name) {
		add("name", "%q: want letters, digits, dot, dash and underscore, 55 bytes at most", c.Name)
	}
}

// readPolicy loads the policy file; nil when none is named.
func (c *config) readPolicy() (*policy.Policy, error) {
	if c.Policy == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.Policy)
	if err != nil {
		return nil, usageError{err}
	}
	p, err := policyfile.Load(c.Policy, data)
	if err != nil {
		return nil, usageError{err}
	}
	return &p, nil
}
