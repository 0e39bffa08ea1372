// Package metrics shows the agent's numbers to Prometheus. Everything is read from the agent when it is scraped: a GPU
// that is gone leaves no gauge behind, and nothing is counted twice.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/spool"
	"github.com/assay-gpu/assay/checks"
)

// A Source has the agent's numbers.
type Source interface {
	Stats(ctx context.Context) (agent.Stats, error)
}

// A ProbeStats are the numbers of one probe child.
type ProbeStats struct {
	Restarts map[string]uint64 // by reason
	Calls    uint64            // NVML calls made; only the nvml probe counts them
}

// Sources are where the numbers come from. A nil function leaves its metrics out.
type Sources struct {
	Agent     Source
	Spool     func() spool.Stats
	Connected func() bool
	Malformed func() uint64                // kernel-log records that could not be read as such
	Probes    func() map[string]ProbeStats // by probe
}

// scrapeTimeout bounds how long a scrape waits for the agent's loop.
const scrapeTimeout = 2 * time.Second

// Handler serves the numbers from a registry of its own.
func Handler(s Sources) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{s})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("assay_"+name, help, labels, nil)
}

var (
	info            = desc("agent_info", "The agent's version and node; always 1.", "version", "node")
	findings        = desc("findings_total", "Findings judged, by check, verdict and action.", "check", "verdict", "action")
	gpuFault        = desc("gpu_fault", "1 while the last snapshot shows a fault on the GPU.", "gpu_uuid", "gpu", "check", "action")
	gpuBlocked      = desc("gpu_blocked", "1 while a GPU is left alone until reboot because a driver call on it hung.", "gpu_uuid")
	nodeFault       = desc("node_fault", "1 while the last snapshot shows a fault of the node itself; part is the port or the PCI address, if it has one.", "check", "part", "action")
	portUp          = desc("port_up", "Whether a network port that is or has been up on this node is up, by the check that judges it.", "check", "port")
	xidTotal        = desc("xid_total", "XIDs in the kernel log, by number and GPU.", "xid", "gpu_uuid")
	xidUnknown      = desc("xid_unknown_total", "XIDs in the kernel log that no rule knows.")
	kmsgRecords     = desc("kmsg_records_total", "Kernel log records read.")
	kmsgMalformed   = desc("kmsg_malformed_total", "Kernel log records that were malformed.")
	kmsgLost        = desc("kmsg_lost_total", "Kernel log records overwritten before they were read.")
	certificate     = desc("certificate_remaining_seconds", "Time left of the certificate at hand; absent without one.")
	hookTotal       = desc("hook_total", "Hooks answered, by outcome.", "hook", "outcome")
	hookDuration    = desc("hook_duration_seconds", "Time to answer a hook.", "hook")
	spoolReports    = desc("spool_reports", "Reports waiting for the control plane.")
	spoolDropped    = desc("spool_dropped_total", "Reports dropped for want of room.", "class")
	connected       = desc("control_connected", "1 while the stream to the control plane stands.")
	snapshotSeconds = desc("snapshot_timestamp_seconds", "When the last snapshot was taken.")
	probeRestarts   = desc("probe_restarts_total", "Probe children started anew.", "probe", "reason")
	nvmlCalls       = desc("nvml_calls_total", "Calls into NVML.")
)

type collector struct{ s Sources }

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, findings, gpuFault, gpuBlocked, nodeFault, portUp, xidTotal, xidUnknown, kmsgRecords, kmsgMalformed, kmsgLost, certificate,
		hookTotal, hookDuration, spoolReports, spoolDropped, connected, snapshotSeconds, probeRestarts, nvmlCalls} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	st, err := c.s.Agent.Stats(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(info, err)
		return
	}
	gauge(info, 1, st.Version, st.Node)
	for k, n := range st.Findings {
		count(findings, float64(n), k.Check, k.Verdict.String(), k.Action.String())
	}
	collectGPUs(st, gauge)
	collectNode(st, gauge)
	for k, n := range st.XIDs {
		count(xidTotal, float64(n), strconv.Itoa(k.Code), k.UUID)
	}
	count(xidUnknown, float64(st.UnknownXIDs))
	count(kmsgRecords, float64(st.KernelRecords))
	count(kmsgLost, float64(st.KernelLost))
	collectHooks(ch, st, count)
	if st.Certificate != nil {
		gauge(certificate, st.Certificate.Seconds())
	}
	if st.SnapshotAge != nil {
		gauge(snapshotSeconds, float64(time.Now().Add(-*st.SnapshotAge).UnixMilli())/1000)
	}
	c.collectRest(gauge, count)
}

type emit func(d *prometheus.Desc, v float64, labels ...string)

func collectGPUs(st agent.Stats, gauge emit) {
	type key struct{ uuid, gpu, check, action string }
	seen := map[key]bool{} // a check may find two faults on one GPU; a gauge is given once
	for _, f := range st.Faults {
		k := key{uuid: f.Subject.GPUUUID, check: f.Check, action: f.Action.String()}
		if f.Subject.GPUIndex != nil {
			k.gpu = strconv.Itoa(*f.Subject.GPUIndex)
		}
		if !seen[k] {
			seen[k] = true
			gauge(gpuFault, 1, k.uuid, k.gpu, k.check, k.action)
		}
	}
	blocked := map[string]bool{}
	for _, g := range st.Blocked {
		if !blocked[g.UUID] {
			blocked[g.UUID] = true
			gauge(gpuBlocked, 1, g.UUID)
		}
	}
}

func collectNode(st agent.Stats, gauge emit) {
	type key struct{ check, part, action string }
	seen := map[key]bool{}
	for _, f := range st.NodeFaults {
		k := key{f.Check, f.Subject.Port, f.Action.String()}
		if f.Subject.Kind != checks.KindPort {
			k.part = f.Subject.PCI
		}
		if !seen[k] {
			seen[k] = true
			gauge(nodeFault, 1, k.check, k.part, k.action)
		}
	}
	for p, up := range st.Ports {
		v := 0.0
		if up {
			v = 1
		}
		gauge(portUp, v, p.Check, p.Port)
	}
}

func collectHooks(ch chan<- prometheus.Metric, st agent.Stats, count emit) {
	// Outcomes that never happened are shown as 0, so that a first one is a rise that a rule sees.
	for _, o := range agent.Outcomes {
		count(hookTotal, float64(st.Hooks[agent.HookKey{Hook: agent.Prolog, Outcome: o}]), string(agent.Prolog), string(o))
	}
	for k, n := range st.Hooks {
		if k.Hook != agent.Prolog {
			count(hookTotal, float64(n), string(k.Hook), string(k.Outcome))
		}
	}
	for h, t := range st.HookDurations {
		buckets := map[float64]uint64{}
		for i, le := range agent.HookBuckets {
			buckets[le] = t.Counts[i]
		}
		ch <- prometheus.MustNewConstHistogram(hookDuration, t.Count, t.Sum, buckets, string(h))
	}
}

func (c *collector) collectRest(gauge, count emit) {
	if c.s.Spool != nil {
		st := c.s.Spool()
		gauge(spoolReports, float64(st.Reports))
		count(spoolDropped, float64(st.DroppedRoutine), "routine")
		count(spoolDropped, float64(st.DroppedFailure), "failure")
	}
	if c.s.Connected != nil {
		v := 0.0
		if c.s.Connected() {
			v = 1
		}
		gauge(connected, v)
	}
	if c.s.Malformed != nil {
		count(kmsgMalformed, float64(c.s.Malformed()))
	}
	if c.s.Probes == nil {
		return
	}
	for probe, p := range c.s.Probes() {
		for reason, n := range p.Restarts {
			count(probeRestarts, float64(n), probe, reason)
		}
		if probe == "nvml" {
			count(nvmlCalls, float64(p.Calls))
		}
	}
}
