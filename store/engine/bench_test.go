package engine

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkTxn writes values of one kilobyte, one after the other: what raft, one fsync and the hand-offs between them cost.
func BenchmarkTxn(b *testing.B) {
	m := openAt(b, b.TempDir())
	value := make([]byte, 1024)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := m.Txn(context.Background(), Write{Key: fmt.Sprintf("/registry/a/%d", i), Value: value}); err != nil {
			b.Fatal(err)
		}
	}
}
