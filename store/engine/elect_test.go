package engine

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// TestAMemberAloneLeadsAtOnce: neither the first start nor a later one waits for a tick, let alone for an election.
func TestAMemberAloneLeadsAtOnce(t *testing.T) {
	const tick = soloTickMs * time.Millisecond
	dir, took := t.TempDir(), []time.Duration{}
	for range 5 {
		begin := time.Now()
		m, err := Open(context.Background(), Config{Dir: dir, NodeName: "n", Clock: supervision.RealClock(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begin).Round(time.Millisecond))
		if _, err := m.Txn(context.Background(), Write{Key: "k", Expect: AnyRevision, Value: []byte("v")}); err != nil {
			t.Error(err)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	// A machine that is busy delays one or the other.
	if slices.Min(took[1:]) > tick {
		t.Errorf("starts took %v", took)
	}
	t.Logf("starts took %v", took)
}
