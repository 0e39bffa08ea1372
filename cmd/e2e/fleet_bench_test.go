package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/cmd/internal/lab"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// The fleet that one assayd is to carry, and with what share of a core.
const (
	fleetAgents  = 2000
	fleetFailing = 0.05
	fleetReports = 30 * time.Second
	fleetRamp    = 20 * time.Second // agents connect spread over it
	fleetSettle  = 15 * time.Second
	fleetWindow  = 60 * time.Second
	fleetGoal    = 0.5 // of a core
)

// fleetPolicies are what happens to the reports that fail. A soft fault costs a certified node its certificate's force and
// asks for a retest, which the load passes at once: three commits and a stream message each. With the caps as built in most
// are held back instead, and one reason on so many nodes is called a storm.
var fleetPolicies = []struct{ name, policy string }{
	{"caps-built-in", "mode: act\n"},
	{"caps-off", "mode: act\nguard:\n  fleet_hour_share: 1\n  fleet_day_share: 1\n  fleet_hour_max: 1000000\n  leaf_hour_share: 1\n  reason_hour_share: 1\n  storm_nodes: 1000000\n  hard_page_share: 1\n"},
}

// BenchmarkFleet puts 2,000 agents, all in this process, on one assayd with its embedded etcd, fsync on, without a workload
// manager. It counts what assayd's process uses over a minute of steady work; this process's own share is given beside it.
func BenchmarkFleet(b *testing.B) {
	for _, p := range fleetPolicies {
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				benchmarkFleet(b, p.policy)
			}
		})
	}
}

func benchmarkFleet(b *testing.B, policy string) {
	bin, err := programs()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	l, err := lab.New(lab.Options{Bin: bin, Dir: dir, Nodes: []string{"unused"}, Policy: policy, Control: []string{"--workload-manager", "none", "--log-level", "warn"}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.StartControl(ctx, "assayd", nil, nil); err != nil {
		b.Fatal(err)
	}
	pid := l.Control("assayd").PID()
	put := putTimes(b, "unix://"+filepath.Join(dir, "assayd", "etcd", "etcd.sock"))
	api := client.Unix(l.Socket("assayd"))
	defer api.Close()

	begun := time.Now()
	var tokens []wire.EnrolToken
	for from := 1; from <= fleetAgents; from += 250 {
		var names []string
		for i := from; i < from+250 && i <= fleetAgents; i++ {
			names = append(names, fmt.Sprintf("sim%04d", i))
		}
		ts, err := api.Enroll(ctx, wire.EnrolAsk{Nodes: names, Adopt: true})
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, ts...)
	}
	ids, err := enrolAll(ctx, filepath.Join(dir, "ids"), tokens)
	if err != nil {
		b.Fatal(err)
	}
	enrolled := time.Since(begun)

	ld := &load{every: fleetReports, failing: fleetFailing}
	lctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for _, id := range ids {
		a := newLoadAgent(ld, id)
		wg.Go(func() {
			if err := a.run(lctx); err != nil {
				b.Error(err)
			}
		})
		time.Sleep(fleetRamp / fleetAgents)
	}
	awaitFleet(ctx, b, api)
	time.Sleep(fleetSettle)

	before, self := usage(b, pid), ownCPU(b)
	m1 := scrape(ctx, b, l.Socket("assayd"))
	made, missed := ld.beats.Load(), ld.missed.Load()
	reports, failing, screens := ld.reports.Load(), ld.failed.Load(), ld.screens.Load()
	start := time.Now()
	lost, connected := 0, fleetAgents
	for time.Since(start) < fleetWindow {
		time.Sleep(5 * time.Second)
		m := scrape(ctx, b, l.Socket("assayd"))
		lost, connected = max(lost, int(m["assay_nodes_lost"])), min(connected, int(m["assay_agents_connected"]))
	}
	after, selfAfter := usage(b, pid), ownCPU(b)
	m2 := scrape(ctx, b, l.Socket("assayd"))
	took := time.Since(start).Seconds()
	made, missed = ld.beats.Load()-made, ld.missed.Load()-missed
	reports, failing, screens = ld.reports.Load()-reports, ld.failed.Load()-failing, ld.screens.Load()-screens
	answered := m2.delta(m1, `assay_api_requests_total{route="POST /v1/agent/heartbeat",status="204"}`)

	core := (after.cpu - before.cpu).Seconds() / took
	own := (selfAfter - self).Seconds() / took
	machine(b)
	b.ReportMetric(core, "assayd-cores")
	b.ReportMetric(own, "load-cores")
	b.ReportMetric(float64(missed), "missed-beats")
	b.ReportMetric(float64(after.pss)/(1<<20), "assayd-MiB")
	b.Logf("%.0f s: %d heartbeats made, %.0f answered 204, %d missed; %d reports, %d failing; %d screens", took, made, answered, missed, reports, failing, screens)
	b.Logf("agents connected at least %d, lost at most %d; streams ended %d, other warnings %d (since the start)", connected, lost, ld.ended.Load(), ld.other.Load())
	b.Logf("assayd %.3f cores, %.0f MiB PSS; this load process %.3f cores; before that, all were enrolled by token in %.1f s",
		core, float64(after.pss)/(1<<20), own, enrolled.Seconds())
	b.Logf("applied %.1f batches a second: %s; one put in the same etcd: %v", m2.delta(m1, "assay_apply_duration_seconds_count")/took, m2.apply(m1), put)
	b.Logf("held back %.0f, storms %.0f, certificates %.0f, cases open %.0f", m2["assay_nodes_held_back"], m2["assay_storms_active"], m2["assay_certificates_valid"], m2["assay_cases_open"])
	verdict(b, "assayd under 2,000 agents", core, fleetGoal, "cores")
	verdict(b, "heartbeats missed", float64(missed)+float64(lost), 1, "")
}

// awaitFleet waits until every node is certified.
func awaitFleet(ctx context.Context, b *testing.B, api *client.Client) {
	b.Helper()
	for {
		f, err := api.Fleet(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if f.Nodes == fleetAgents && f.Certified >= fleetAgents*9/10 && f.ByState["enrolled"] == 0 {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			b.Fatalf("%v; the fleet is %v", context.Cause(ctx), f.ByState)
		}
	}
}

type use struct {
	cpu time.Duration // user and system
	pss int64         // bytes
}

// usage reads what a process has used so far: /proc/PID/stat, fields 14 and 15 in ticks of 10 ms, and smaps_rollup.
func usage(b *testing.B, pid int) (u use) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // from field 3 on
	for _, f := range fields[11:13] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		u.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(rollup)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			var kb int64
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				b.Fatal(err)
			}
			u.pss = kb << 10
		}
	}
	return u
}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// metrics are the series of one scrape, by name with labels.
type metrics map[string]float64

func scrape(ctx context.Context, b *testing.B, socket string) metrics {
	b.Helper()
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://assayd/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	m := metrics{}
	for line := range strings.Lines(string(body)) {
		i := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64); i > 0 && err == nil && line[0] != '#' {
			m[line[:i]] = v
		}
	}
	return m
}

func (m metrics) delta(before metrics, name string) float64 { return m[name] - before[name] }

// apply is the bounds under which half and 99 % of the commits between two scrapes stayed, by the histogram's buckets.
func (m metrics) apply(before metrics) string {
	const name = "assay_apply_duration_seconds"
	total := m.delta(before, name+"_count")
	bound := func(q float64) string {
		for _, le := range []string{"0.0005", "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "5"} {
			if m.delta(before, name+`_bucket{le="`+le+`"}`) >= q*total {
				return le + " s"
			}
		}
		return "more than 5 s"
	}
	return fmt.Sprintf("mean %.1f ms, half within %s, 99 %% within %s", 1000*m.delta(before, name+"_sum")/max(total, 1), bound(0.5), bound(0.99))
}
