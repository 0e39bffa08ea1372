package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Somebody who can write to etcd makes an order of alice's bob's. The leader still remembers it right; the audit reads what is
// stored, and names the record.
func TestAuditReadsWhatIsStored(t *testing.T) {
	const prefix = "/audit/"
	s := startSite(t, newPlant("gpu001"), prefix, nil)
	s.certify("gpu001")
	s.try("hold", func(ctx context.Context) error {
		_, err := s.coord.Order(ctx, "alice", api.VerbHold, "gpu001", wire.NodeVerb{Reason: "new cables"})
		return err
	})
	s.try("refuse", func(ctx context.Context) error {
		return s.coord.Refused(ctx, "carol", authority.RoleViewer, authority.RoleOperator, "POST /v1/nodes/gpu001/drain", "gpu001")
	})
	audit := func() wire.Audit {
		t.Helper()
		a, err := s.coord.Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	whole := audit()
	if whole.Broken != nil || whole.Records < 5 || whole.Before != 0 || whole.First.Prev != "" {
		t.Fatalf("%+v broken %+v", whole, whole.Broken)
	}

	srv, err := etcd()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clientv3.New(clientv3.Config{Endpoints: srv.Endpoints, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	kept, err := raw.Get(t.Context(), prefix+keyHistory, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	forged := ""
	for _, kv := range kept.Kvs {
		if text := string(kv.Value); strings.Contains(text, "new cables") {
			forged = strings.TrimPrefix(string(kv.Key), prefix+keyHistory)
			if _, err := raw.Put(t.Context(), string(kv.Key), strings.ReplaceAll(text, "alice", "bob")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a := audit(); a.Broken == nil || a.Broken.Record.Cursor != forged || a.Broken.Record.By != "bob" || a.Broken.Why != "it is not what was written" {
		t.Errorf("forged %s: broken %+v", forged, a.Broken)
	}
	if _, err := raw.Delete(t.Context(), prefix+keyHistory+forged); err != nil {
		t.Fatal(err)
	}
	if a := audit(); a.Broken == nil || a.Broken.Record.Cursor <= forged || !strings.Contains(a.Broken.Why, "missing") {
		t.Errorf("deleted %s: broken %+v", forged, a.Broken)
	}
}
