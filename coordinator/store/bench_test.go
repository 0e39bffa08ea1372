package store_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/assay-gpu/assay/coordinator/store"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// BenchmarkCommit compares a fenced commit with the least that etcd can do, a put of one key, on the same server with
// fsync on. A commit of one key writes two: the commit's marker is the other.
func BenchmarkCommit(b *testing.B) {
	value := make([]byte, 1024)
	b.Run("put", func(b *testing.B) {
		client, err := clientv3.New(clientv3.Config{Endpoints: endpoints(b)})
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		for b.Loop() {
			if _, err := client.Put(b.Context(), "/bench/put", string(value)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 8, 100} {
		b.Run(fmt.Sprint("commit/", n), func(b *testing.B) {
			s := open(b, store.Config{Logger: slog.New(slog.DiscardHandler)})
			term := lead(b, s, "a")
			ops := make([]store.Op, n)
			for i := range ops {
				ops[i] = store.Op{Key: fmt.Sprint("nodes/", i), Value: value}
			}
			for b.Loop() {
				commit(b, term, ops...)
			}
		})
	}
}
