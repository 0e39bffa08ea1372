package api

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A Snapshot is what the control plane shows of its state at one scrape. A follower leaves all but Leader and Term
// zero: Prometheus sums over control hosts.
type Snapshot struct {
	Nodes          map[string]int // by state; every state of package lifecycle is shown, a missing one as 0
	Lost           int
	HeldBack       int
	Certificates   int // valid now
	CasesOpen      int
	Leader         bool
	Term           int64
	Frozen         bool
	Budgets        []wire.Budget
	Storms         int            // active
	EffectsPending map[string]int // by kind; every kind is shown
	SlurmRead      time.Time      // last whole read of Slurm; zero: none yet, or no Slurm
	StoreUsed      int64          // bytes of etcd's database in use; of this host's member, where etcd is its own
	StoreSize      int64          // bytes of its file; 0: not looked at yet
	StoreQuota     int64          // bytes that it may have
	StoreFull      bool           // its no-space alarm is on
	DrillEvery     time.Duration  // as policy asks; 0: no drill begins by itself
	DrillFailed    bool           // the last drill that ended
	DrillPassed    time.Time      // when one passed last; zero: never
}

var states = []lifecycle.State{
	lifecycle.Enrolled, lifecycle.Certified, lifecycle.Screening, lifecycle.Suspect, lifecycle.Withheld, lifecycle.Draining,
	lifecycle.Quarantined, lifecycle.Remediating, lifecycle.RMA, lifecycle.Retired,
}

// Metrics are assayd's numbers. Counters are incremented where the thing happens; gauges are read from a Snapshot at
// each scrape, so that none sticks. It has its own registry.
type Metrics struct {
	registry     *prometheus.Registry
	pages        *prometheus.CounterVec
	guardRefused *prometheus.CounterVec
	effectTime   *prometheus.HistogramVec
	effects      *prometheus.CounterVec
	permits      *prometheus.CounterVec
	apply        prometheus.Histogram
	requests     *prometheus.CounterVec
	connected    prometheus.Gauge
}

// NewMetrics makes the metrics of one assayd. Snapshot is called at each scrape.
func NewMetrics(version string, snapshot func() Snapshot) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		pages:        counter("assay_pages_total", "Pages sent, by reason.", "reason"),
		guardRefused: counter("assay_guard_refused_total", "Automatic steps the guard had no room for, by step.", "step"),
		effects:      counter("assay_effects_total", "Effects ended, by kind and outcome (done, failed, skipped).", "kind", "outcome"),
		permits:      counter("assay_permits_total", "Permits to exit 1 from a prolog, by outcome (granted, refused).", "outcome"),
		requests:     counter("assay_api_requests_total", "API requests, by route and status.", "route", "status"),
		effectTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_effect_duration_seconds", Help: "Time from an effect's record to its end, by kind.",
			Buckets: []float64{.05, .1, .2, .5, 1, 1.5, 2, 5, 10, 30, 60, 300, 1800, 3600},
		}, []string{"kind"}),
		apply: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "assay_apply_duration_seconds", Help: "Time the apply loop took for one event, commit included.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 5},
		}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{Name: "assay_agents_connected", Help: "Agents with an open stream to this process."}),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "assay_build_info", Help: "Always 1; the version is a label."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	for _, o := range []string{"granted", "refused"} {
		m.permits.WithLabelValues(o)
	}
	m.registry.MustRegister(m.pages, m.guardRefused, m.effects, m.permits, m.requests, m.effectTime, m.apply, m.connected, info, &stateCollector{snapshot})
	return m
}

// Page counts a page.
func (m *Metrics) Page(reason string) { m.pages.WithLabelValues(reason).Inc() }

// GuardRefused counts a step (suspend, drain, refuse, screen, kill) that the guard had no room for.
func (m *Metrics) GuardRefused(step string) { m.guardRefused.WithLabelValues(step).Inc() }

// EffectEnded counts an effect's end; took is the time since it was recorded.
func (m *Metrics) EffectEnded(kind, outcome string, took time.Duration) {
	m.effects.WithLabelValues(kind, outcome).Inc()
	m.effectTime.WithLabelValues(kind).Observe(took.Seconds())
}

// Permit counts an answer to a permit.
func (m *Metrics) Permit(granted bool) {
	outcome := "refused"
	if granted {
		outcome = "granted"
	}
	m.permits.WithLabelValues(outcome).Inc()
}

// Applied records how long one event took, commit included.
func (m *Metrics) Applied(took time.Duration) { m.apply.Observe(took.Seconds()) }

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}
