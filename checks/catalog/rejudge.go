package catalog

import (
	"fmt"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/ecc"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/rowremap"
	"github.com/assay-gpu/assay/checks/xid"
)

// Rejudge judges a finding that was kept again, by another policy. Whole reports whether its evidence holds the reading, so
// that thresholds count as well as actions; of other checks the finding stands as it was made, and only the action that
// policy sets for the check is new. It keeps subject, time and boot. Whether the check acts is for ModeOf to say.
func Rejudge(f checks.Finding, p policy.Policy) (again checks.Finding, whole bool) {
	again, whole = reread(f, p)
	again.Subject, again.At, again.BootID, again.Count = f.Subject, f.At, f.BootID, f.Count
	again.Incident, again.Secondary = f.Incident, f.Secondary
	return settle([]checks.Finding{again}, p)[0], whole
}

// rateOfECC stands in the reason of a fault by the rate of corrected errors.
const rateOfECC = "corrected errors in the last "

func reread(f checks.Finding, p policy.Policy) (checks.Finding, bool) {
	gpu := checks.GPU{Node: f.Subject.Node, UUID: f.Subject.GPUUUID, PCI: f.Subject.PCI}
	switch f.Check {
	case xid.ID, xid.SwitchID:
		if e, ok := xid.Parse(f.Evidence); ok && e.Code == f.Code {
			return xid.Judge(e, p.XID), true
		}
	case rowremap.ID:
		r := rowremap.Reading{Have: checks.Read}
		if n, err := fmt.Sscanf(f.Evidence, "correctable=%d uncorrectable=%d pending=%t failed=%t", &r.Correctable, &r.Uncorrectable, &r.Pending, &r.Failed); err == nil && n == 4 {
			return rowremap.Judge(gpu, r, p.RowRemap), true
		}
	case ecc.ID:
		r := ecc.Reading{Have: checks.Read}
		if n, err := fmt.Sscanf(f.Evidence, "enabled=%t volatile_corrected=%d volatile_uncorrected=%d aggregate_corrected=%d aggregate_uncorrected=%d",
			&r.Enabled, &r.VolatileCorrected, &r.VolatileUncorrected, &r.AggregateCorrected, &r.AggregateUncorrected); err == nil && n == 5 && f.Action != checks.RMA && !strings.Contains(f.Reason, rateOfECC) {
			// A fault by the driver's SRAM threshold asks for rma, and goes by no threshold of ours; the rate of an hour
			// is not in the evidence.
			r.HaveSRAM = checks.Read
			return ecc.Judge(gpu, r, p.ECC), true
		}
	}
	return f, false
}
