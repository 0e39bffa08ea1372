package metrics

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-gpu/assay/agent"
	"github.com/assay-gpu/assay/agent/spool"
	"github.com/assay-gpu/assay/checks"
)

type fakeSource struct {
	st  agent.Stats
	err error
}

func (f *fakeSource) Stats(context.Context) (agent.Stats, error) { return f.st, f.err }

func scrape(t *testing.T, s Sources) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(s).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestEveryMetric(t *testing.T) {
	index, left, ago := 3, 90*time.Minute, 2*time.Second
	f := checks.Finding{Check: "rowremap", Verdict: checks.Fail, Action: checks.RMA, Subject: checks.Subject{Kind: checks.KindGPU, GPUUUID: "GPU-a", GPUIndex: &index}}
	onPort := checks.Finding{Check: "infiniband", Verdict: checks.Fail, Action: checks.Drain, Subject: checks.Subject{Kind: checks.KindPort, PCI: "0000:5d:00.0", Port: "mlx5_3/1"}}
	src := &fakeSource{st: agent.Stats{
		Node: "n1", Version: "1.2", Findings: map[agent.FindingKey]uint64{{Check: "ecc", Verdict: checks.Pass}: 8},
		XIDs: map[agent.XIDKey]uint64{{Code: 79, UUID: "GPU-a"}: 2}, UnknownXIDs: 1, KernelRecords: 10, KernelLost: 4,
		Hooks:         map[agent.HookKey]uint64{{Hook: agent.Prolog, Outcome: agent.FastPass}: 5, {Hook: agent.Epilog, Outcome: agent.SuitePass}: 3},
		HookDurations: map[agent.Hook]agent.Histogram{agent.Prolog: {Counts: make([]uint64, len(agent.HookBuckets)), Count: 5, Sum: 0.5}},
		Faults:        []checks.Finding{f, f}, Blocked: []checks.GPU{{UUID: "GPU-b"}},
		NodeFaults: []checks.Finding{onPort, onPort, {Check: "memory", Verdict: checks.Fail, Action: checks.Drain, Subject: checks.Subject{Kind: checks.KindNode}},
			{Check: "sxid", Verdict: checks.Fail, Action: checks.Reboot, Subject: checks.Subject{Kind: checks.KindSwitch, PCI: "0000:06:00.0", Port: "3"}}},
		Ports: map[agent.PortKey]bool{{Check: "infiniband", Port: "mlx5_0/1"}: true, {Check: "infiniband", Port: "mlx5_3/1"}: false}, Certificate: &left, SnapshotAge: &ago,
	}}
	s := Sources{
		Agent: src, Spool: func() spool.Stats { return spool.Stats{Reports: 7, DroppedRoutine: 2, DroppedFailure: 1} },
		Connected: func() bool { return true }, Malformed: func() uint64 { return 6 },
		Probes: func() map[string]ProbeStats {
			return map[string]ProbeStats{"nvml": {Restarts: map[string]uint64{"hung": 2}, Calls: 99}}
		},
	}
	got := scrape(t, s)
	for _, want := range []string{
		`assay_agent_info{node="n1",version="1.2"} 1`,
		`assay_findings_total{action="none",check="ecc",verdict="pass"} 8`,
		`assay_gpu_fault{action="rma",check="rowremap",gpu="3",gpu_uuid="GPU-a"} 1`,
		`assay_gpu_blocked{gpu_uuid="GPU-b"} 1`,
		`assay_node_fault{action="drain",check="infiniband",part="mlx5_3/1"} 1`,
		`assay_node_fault{action="drain",check="memory",part=""} 1`,
		`assay_node_fault{action="reboot",check="sxid",part="0000:06:00.0"} 1`,
		`assay_port_up{check="infiniband",port="mlx5_0/1"} 1`,
		`assay_port_up{check="infiniband",port="mlx5_3/1"} 0`,
		`assay_xid_total{gpu_uuid="GPU-a",xid="79"} 2`,
		`assay_xid_unknown_total 1`,
		`assay_kmsg_records_total 10`,
		`assay_kmsg_malformed_total 6`,
		`assay_kmsg_lost_total 4`,
		`assay_certificate_remaining_seconds 5400`,
		`assay_hook_total{hook="prolog",outcome="fast_pass"} 5`,
		`assay_hook_total{hook="prolog",outcome="refused_hard"} 0`,
		`assay_hook_total{hook="epilog",outcome="suite_pass"} 3`,
		`assay_hook_duration_seconds_count{hook="prolog"} 5`,
		`assay_hook_duration_seconds_sum{hook="prolog"} 0.5`,
		`assay_spool_reports 7`,
		`assay_spool_dropped_total{class="routine"} 2`,
		`assay_spool_dropped_total{class="failure"} 1`,
		`assay_control_connected 1`,
		`assay_snapshot_timestamp_seconds `,
		`assay_probe_restarts_total{probe="nvml",reason="hung"} 2`,
		`assay_nvml_calls_total 99`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	// What is gone leaves no gauge behind.
	src.st.Faults, src.st.Blocked, src.st.Certificate = nil, nil, nil
	got = scrape(t, s)
	for _, gone := range []string{"assay_gpu_fault", "assay_gpu_blocked", "assay_certificate_remaining_seconds"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is still there", gone)
		}
	}
}

func TestAnAgentThatDoesNotAnswerIsAnError(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(Sources{Agent: &fakeSource{err: errors.New("busy")}}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if strings.Contains(w.Body.String(), "assay_agent_info{") {
		t.Fatalf("%d: numbers of an agent that gave none:\n%s", w.Code, w.Body.String())
	}
}
