package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descNodes        = desc("assay_nodes", "Nodes, by lifecycle state.", "state")
	descLost         = desc("assay_nodes_lost", "Nodes without a heartbeat.")
	descHeldBack     = desc("assay_nodes_held_back", "Nodes a step is due on that the guard has no room for.")
	descCertificates = desc("assay_certificates_valid", "Nodes that hold a certificate valid now.")
	descCases        = desc("assay_cases_open", "Open cases.")
	descLeader       = desc("assay_leader", "1 if this process leads.")
	descTerm         = desc("assay_term", "The leader's term as this process knows it.")
	descFrozen       = desc("assay_guard_frozen", "1 while an operator has stopped all automatic action.")
	descSpent        = desc("assay_guard_spent", "Steps charged to a budget in its window, by scope.", "scope")
	descLimit        = desc("assay_guard_limit", "Steps a budget allows in its window, by scope.", "scope")
	descStorms       = desc("assay_storms_active", "Reasons stopped as a storm.")
	descPending      = desc("assay_effects_pending", "Effects recorded and not yet ended, by kind.", "kind")
	descStoreUsed    = desc("assay_store_used_bytes", "Bytes in use of the database of the etcd that this process is connected to.")
	descStoreSize    = desc("assay_store_size_bytes", "Bytes of its file.")
	descStoreQuota   = desc("assay_store_quota_bytes", "Bytes that its file may have.")
	descStoreFull    = desc("assay_store_full", "1 while etcd takes no writes for want of room.")
	descDrillEvery   = desc("assay_drill_interval_seconds", "Time between drills that begin by themselves, as policy asks; 0: none does.")
	descDrillFailed  = desc("assay_drill_failed", "1 if the last drill did not come back in time.")
	descDrillPassed  = desc("assay_drill_last_success_timestamp_seconds", "Unix time at which a drill came back last; absent before the first.")
	descSlurmRead    = desc("assay_slurm_read_timestamp_seconds", "Unix time of the last whole read of Slurm; absent without one.")
)

// stateCollector turns a Snapshot into gauges at each scrape. A node that changes state leaves no old gauge behind.
type stateCollector struct{ snapshot func() Snapshot }

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descNodes, descLost, descHeldBack, descCertificates, descCases, descLeader, descTerm, descFrozen,
		descSpent, descLimit, descStorms, descPending, descSlurmRead, descStoreUsed, descStoreSize, descStoreQuota, descStoreFull, descDrillEvery, descDrillFailed, descDrillPassed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.snapshot()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, st := range states {
		gauge(descNodes, float64(s.Nodes[string(st)]), string(st))
	}
	gauge(descLost, float64(s.Lost))
	gauge(descHeldBack, float64(s.HeldBack))
	gauge(descCertificates, float64(s.Certificates))
	gauge(descCases, float64(s.CasesOpen))
	gauge(descLeader, flag(s.Leader))
	gauge(descTerm, float64(s.Term))
	gauge(descFrozen, flag(s.Frozen))
	seen := map[string]bool{}
	for _, b := range s.Budgets {
		if seen[b.Scope] { // two gauges of one name would fail the whole scrape
			continue
		}
		seen[b.Scope] = true
		gauge(descSpent, float64(b.Spent), b.Scope)
		gauge(descLimit, float64(b.Limit), b.Scope)
	}
	gauge(descStorms, float64(s.Storms))
	for _, k := range lifecycle.EffectKinds {
		gauge(descPending, float64(s.EffectsPending[k]), k)
	}
	gauge(descStoreFull, flag(s.StoreFull))
	if s.StoreSize > 0 {
		gauge(descStoreUsed, float64(s.StoreUsed))
		gauge(descStoreSize, float64(s.StoreSize))
		gauge(descStoreQuota, float64(s.StoreQuota))
	}
	gauge(descDrillEvery, s.DrillEvery.Seconds())
	gauge(descDrillFailed, flag(s.DrillFailed))
	if !s.DrillPassed.IsZero() {
		gauge(descDrillPassed, float64(s.DrillPassed.UnixMilli())/1000)
	}
	if !s.SlurmRead.IsZero() {
		gauge(descSlurmRead, float64(s.SlurmRead.UnixMilli())/1000)
	}
}
