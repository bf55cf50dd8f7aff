package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/zombie"
)

// TestFencedGenerationCannotRenew: the heartbeat of a generation that was given up is refused, and the last one is its successor's.
func TestFencedGenerationCannotRenew(t *testing.T) {
	h, base := newHeartbeats(), time.Unix(1000, 0)
	second, first := zombie.Wake(t, func(ctx context.Context, generation uint64) error {
		return h.Renewed(ctx, "n", base.Add(-time.Duration(generation)*time.Second))
	})
	if second != nil || !errors.Is(first, supervision.ErrFenced) {
		t.Errorf("the current generation: %v, the one that was given up: %v", second, first)
	}
	if at, ok := h.Last("n"); !ok || !at.Equal(base.Add(-2*time.Second)) {
		t.Errorf("the last heartbeat is of %v, %v", at, ok)
	}
	if err := h.Renewed(context.Background(), "n", base); err != nil {
		t.Errorf("a heartbeat of no generation: %v", err)
	}
}
