package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-gpu/assay/checks"
)

// Keys, below the store's prefix /assay/v1/.
const (
	keyNodes    = "nodes/"
	keyCerts    = "certs/"
	keyCases    = "cases/"
	keyEffects  = "effects/"
	keyHistory  = "history/"
	keyTokens   = "tokens/"
	keyRefusals = "refusals/"
	keyReports  = "reports/"
	keySigning  = "keys/"
	keyJobs     = "jobs/"
	keyScripts  = "scripts/"
	keyLogs     = "joblogs/"
	keyGangs    = "gangs/"
	keyArrays   = "arrays/"
	keyAccounts = "accounts/"
	keyQOS      = "qos/"
	keyParts    = "partitions/"
	keyReserved = "reservations/"
	keyPriority = "priority"
	keyUsage    = "usage"
	keyTickets  = "rma/"
	keyHardware = "hardware/"
	keyGuard    = "guard"
	keyPolicy   = "policy"
	keyRollout  = "rollout"
	keyLearned  = "learned"
	keyDrill    = "drill"
	keyOnce     = "idempotency/"
	keyCounters = "counters"
	keyCA       = "ca"

	keyGeneration = "generation"
)

// historyKept is how many history entries stay in etcd: at about 600 bytes each some 12 MiB of its 2 GiB quota.
const historyKept = 20_000

// cursor writes a history number so that text order is number order.
func cursor(n uint64) string { return fmt.Sprintf("%016x", n) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// findingsKept bounds what one case's record holds: the first finding of each kind, and how often it came.
const findingsKept = 64

// evidenceKept bounds what is kept of a finding's raw evidence, in bytes. The whole is in the node's own evidence.
const evidenceKept = 2 << 10

// appendFindings adds the new findings to a case's: one that is there already, by check, code and subject, raises its count.
func appendFindings(have, add []checks.Finding) []checks.Finding {
	have = slices.Clone(have)
	for _, f := range add {
		f.Evidence = f.Evidence[:min(len(f.Evidence), evidenceKept)]
		i := slices.IndexFunc(have, func(h checks.Finding) bool {
			return h.Check == f.Check && h.Code == f.Code && h.Subject.Key() == f.Subject.Key()
		})
		switch {
		case i >= 0:
			have[i].Count = max(have[i].Count, 1) + max(f.Count, 1)
		case len(have) < findingsKept:
			have = append(have, f)
		}
	}
	return have
}
