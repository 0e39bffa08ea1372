package hostlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks/policy"
)

// TestJudge judges lines one by one and prints what comes of each.
func TestJudge(t *testing.T) {
	datadriven.RunTest(t, "testdata/judge", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			e, ok := Parse(strings.TrimSuffix(line, "\n"))
			if !ok {
				b.WriteString("no event\n")
				continue
			}
			f := Judge(e, policy.HostLog{SoftLockup: policy.Duration(2 * time.Minute), HungTask: policy.Duration(5 * time.Minute)})
			hard := ""
			if f.Hard {
				hard = " hard"
			}
			fmt.Fprintf(&b, "%s: %s %s%s: %s\n", f.Subject.Key(), f.Verdict, f.Action, hard, f.Reason)
			if f.Check != ID || f.Evidence != strings.TrimSuffix(line, "\n") {
				t.Errorf("%+v", f)
			}
		}
		return b.String()
	})
}
