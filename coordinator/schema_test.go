package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/store"
)

// stored opens the tests' etcd beside any coordinator, to write what another version of assay would have left there.
func stored(t *testing.T) *clientv3.Client {
	t.Helper()
	srv, err := etcd()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientv3.New(clientv3.Config{Endpoints: srv.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}

// Data that a later version has written is refused with a word on what to do, and nothing of it is touched.
func TestNewerDataIsRefused(t *testing.T) {
	const prefix = "/newer/"
	raw := stored(t)
	written := map[string]string{
		keyGeneration:       fmt.Sprintf(`{"schema":%d,"of_tomorrow":true}`, schema+1),
		keyNodes + "gpu001": `{"name":"gpu001","state":"certified","of_tomorrow":{"x":1}}`,
	}
	for k, v := range written {
		if _, err := raw.Put(t.Context(), prefix+k, v); err != nil {
			t.Fatal(err)
		}
	}
	srv, err := etcd()
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Config{Endpoints: srv.Endpoints, Prefix: prefix, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := New(Config{Name: "ctl", URL: "https://127.0.0.1:7420", Store: st, Alone: true, Lease: 3e9, Log: quietLog(),
		Metrics: func(f func() api.Snapshot) *api.Metrics { return api.NewMetrics("test", f) }}, func() {})
	err = c.Run(t.Context())
	var newer *NewerDataError
	if !errors.As(err, &newer) || newer.Have != schema+1 || newer.Know != schema {
		t.Fatalf("run over newer data: %v", err)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("schema %d, and this assayd knows schemas up to %d", schema+1, schema)) || !strings.Contains(newer.Hint(), "backup") {
		t.Errorf("%q, %q", err, newer.Hint())
	}
	for k, want := range written {
		got, err := raw.Get(t.Context(), prefix+k)
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
			t.Errorf("%s is %v, %v", k, got.Kvs, err)
		}
	}
	if got, err := raw.Get(t.Context(), prefix+keyHistory, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || got.Count != 0 {
		t.Errorf("%d history entries were written, %v", got.Count, err)
	}
}

// Data of schema 1, which knew no ledger and did not say its number, is brought forward: the boards of its nodes stand in the
// ledger, the number is written, and the nodes are as they were. It is done once.
func TestSchema1IsBroughtForward(t *testing.T) {
	const prefix = "/schema1/"
	raw := stored(t)
	n := lifecycle.Node{Name: "gpu001", State: lifecycle.Enrolled, Since: noon, BootID: "b", Version: 3, Inventory: checks.Inventory{
		Node: "gpu001", BootID: "b", NodeSerial: "SN1", GPUs: []checks.GPU{{Node: "gpu001", UUID: "GPU-1", Serial: "S-1", Index: 0}, {Node: "gpu001", UUID: "GPU-2", Serial: "S-2", Index: 1}}}}
	if _, err := raw.Put(t.Context(), prefix+keyNodes+"gpu001", string(marshal("node", n))); err != nil {
		t.Fatal(err)
	}
	schemaNow := func() int {
		got, err := raw.Get(context.Background(), prefix+keyGeneration)
		if err != nil || len(got.Kvs) == 0 {
			return 0
		}
		var g generation
		if err := json.Unmarshal(got.Kvs[0].Value, &g); err != nil {
			t.Fatal(err)
		}
		return g.Schema
	}
	for round := range 2 {
		s := startSite(t, newPlant("gpu001"), prefix, nil)
		s.try("forward", func(ctx context.Context) error {
			if got := schemaNow(); got != schema {
				return fmt.Errorf("schema %d", got)
			}
			parts, err := s.coord.Parts(ctx, nil)
			if err != nil {
				return err
			}
			if len(parts) != 2 || parts[0].Serial != "S-1" || len(parts[0].Places) != 1 || parts[0].Places[0].Node != "gpu001" {
				return fmt.Errorf("ledger %+v", parts)
			}
			ns, err := s.coord.Nodes(ctx, []string{"gpu001"})
			if err == nil && (ns[0].State != "enrolled" || ns[0].GPUs != 2 || !ns[0].Since.Equal(noon)) {
				return fmt.Errorf("round %d: node %+v", round, ns[0])
			}
			return err
		})
		s.stop()
	}
}
