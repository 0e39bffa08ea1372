package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// BenchmarkHeartbeat is one heartbeat over an open HTTP/2 connection with mutual TLS, both ends. At 2,000 agents and
// one in 10 s there are 200 a second.
func BenchmarkHeartbeat(b *testing.B) {
	benchmarkPost(b, wire.PathHeartbeat, wire.Heartbeat{Node: "gpu001", BootID: "0b8f7c1e-5a0f-4d6b-9d0e-2f1f0c6a7b11", Driver: "550.54.15", CertSerial: 7, PolicyVersion: 3, AgentVersion: "v1"})
}

// BenchmarkReport is one clean report of eight GPUs and four checks.
func BenchmarkReport(b *testing.B) {
	r := checks.Report{ID: "r", Node: "gpu001", Verdict: checks.Pass, Tested: []string{"inventory", "xid", "ecc", "rowremap"}}
	for i := range 8 {
		g := checks.GPU{Node: "gpu001", UUID: "GPU-0b8f7c1e-5a0f-4d6b-9d0e-2f1f0c6a7b11", Index: i, PCI: "0000:3b:00.0", Name: "NVIDIA H100 80GB HBM3"}
		r.Inventory.GPUs = append(r.Inventory.GPUs, g)
		for _, c := range r.Tested {
			r.Findings = append(r.Findings, checks.Finding{Check: c, Subject: g.Subject(), Verdict: checks.Pass, Reason: "within limits"})
		}
	}
	benchmarkPost(b, wire.PathReports, r)
}

func benchmarkPost(b *testing.B, path string, v any) {
	r := newRig(b)
	r.server.Unlimited()
	r.plane.Add(wire.Node{Name: "gpu001", State: "certified"})
	c := r.as(b, authority.Node, "gpu001")
	body, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := c.Post(r.url+path, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode >= 300 {
			b.Fatal(resp.Status)
		}
	}
}

// BenchmarkFleetIdle holds 200 agents, each with a connection and a stream of its own, and beats for each ten times as
// often as a policy's default: as many heartbeats as 2,000 agents send. It reports the cores that both ends together
// take.
func BenchmarkFleetIdle(b *testing.B) {
	const agents, every = 200, time.Second
	r := newRig(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clients := make([]*http.Client, agents)
	names := make([]string, agents)
	var streams sync.WaitGroup
	for i := range clients {
		names[i] = "gpu" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		r.plane.Add(wire.Node{Name: names[i], State: "certified"})
		clients[i] = r.as(b, authority.Node, names[i])
		clients[i].Timeout = 0
		req, err := http.NewRequestWithContext(ctx, "GET", r.url+wire.PathStream, nil)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := clients[i].Do(req)
		if err != nil {
			b.Fatal(err)
		}
		streams.Go(func() {
			io.Copy(io.Discard, resp.Body) // ends with ctx
			resp.Body.Close()
		})
	}
	for b.Loop() {
		begin, cpu := time.Now(), cpuTime(b)
		tick := time.NewTicker(every / agents)
		for i := range agents * 3 {
			<-tick.C
			resp, err := clients[i%agents].Post(r.url+wire.PathHeartbeat, "application/json", bytes.NewReader([]byte(`{"node":"`+names[i%agents]+`","boot_id":"b"}`)))
			if err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
		tick.Stop()
		b.ReportMetric((cpuTime(b)-cpu).Seconds()/time.Since(begin).Seconds(), "cores")
	}
	cancel()
	streams.Wait()
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
