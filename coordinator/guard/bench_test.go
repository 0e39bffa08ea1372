package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-gpu/assay/checks/policy"
)

// BenchmarkMassFault is one more hard fault with the same reason after n within the hour, as when a whole fleet fails:
// what the apply loop pays the guard for it.
func BenchmarkMassFault(b *testing.B) {
	p, c := policy.Default().Guard, Census{Schedulable: 10000, Leaf: map[string]int{"leaf12": 32}}
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
			var books Books
			fault := func(i int) Books {
				node := fmt.Sprintf("gpu%05d", i)
				noted, _ := books.Note(p, c, node, "S-"+node, "xid 79", at)
				spent, _ := noted.Spend(p, c, Charge{Node: node, Leaf: "leaf12", Reason: "xid 79", Step: "revoke", At: at, Hard: true})
				return spent
			}
			for i := range n {
				books = fault(i)
			}
			for b.Loop() {
				fault(n)
			}
		})
	}
}
