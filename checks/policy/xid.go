package policy

import (
	"fmt"

	"github.com/assay-gpu/assay/checks"
)

// XID holds the rules of package xid that a site may change.
type XID struct {
	Actions map[int]string `json:"actions,omitempty" yaml:"actions"` // by XID: the action instead of the table's
}

func (v *validator) xid(x XID) {
	for code, name := range x.Actions {
		path := fmt.Sprintf("xid.actions.%d", code)
		if code < 1 {
			v.add(path, "want an XID, 1 or more")
		}
		var a checks.Action
		if err := a.UnmarshalText([]byte(name)); err != nil {
			v.add(path, "%v", err)
		}
	}
}
