package wire

import (
	"encoding/json"
	"testing"

	"github.com/assay-gpu/assay/checks/policy"
)

// An agent of a later version hears a control plane of an earlier one, or finds on its disk what it was told before the
// upgrade: the policy lacks a section. It must not lose its certificate for that.
func TestDesiredOfAnEarlierVersion(t *testing.T) {
	p := policy.Default()
	p.Version, p.RowRemap.MaxCorrectable = 3, 7
	text, err := json.Marshal(Desired{Version: 9, Node: "gpu001", Policy: p, Certificate: &GrantedCertificate{RemainingSeconds: 60}})
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree["policy"].(map[string]any), "clocks")
	if text, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	var d Desired
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if faults := policy.Validate(d.Policy); len(faults) > 0 || d.Policy.RowRemap.MaxCorrectable != 7 || d.Policy.Version != 3 {
		t.Errorf("policy %+v, faults %v", d.Policy.RowRemap, faults)
	}
	if d.Version != 9 || d.Node != "gpu001" || d.Certificate == nil || d.Certificate.RemainingSeconds != 60 {
		t.Errorf("the rest of it is lost: %+v", d)
	}
}
