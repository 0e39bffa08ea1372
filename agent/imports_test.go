package agent

import (
	"testing"

	"github.com/assay-gpu/assay/checks/importrules"
)

func TestImports(t *testing.T) {
	importrules.Check(t, map[string]string{
		"go.etcd.io/":                   "only assayd talks to etcd",
		"github.com/NVIDIA/":            "the daemon makes no driver call itself; agent/probe/nvml's child does",
		"github.com/prometheus/":        "client_golang is for agent/metrics",
		"github.com/spf13/":             "cobra is for cmd",
		"github.com/coreos/go-systemd/": "go-systemd is for cmd",
		"net/http":                      "agent/control talks to the control plane",
		"net/":                          "agent/socket and agent/control are the edges",
		"os/exec":                       "commands are run by the Runner of cmd/assay-agent",
		"github.com/assay-gpu/assay/agent/control": "the core declares what it calls; the edges import the core",
		"github.com/assay-gpu/assay/agent/spool":   "the core declares what it calls; the edges import the core",
		"github.com/assay-gpu/assay/agent/socket":  "the core declares what it calls; the edges import the core",
		"github.com/assay-gpu/assay/agent/metrics": "a metric never gates a decision",
		"github.com/assay-gpu/assay/agent/probe/":  "the core declares what it calls; the edges import the core",
	})
}
