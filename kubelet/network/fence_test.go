package network

import (
	"context"
	"errors"
	"testing"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/zombie"
)

// TestFencedGenerationCannotAttach: a generation that was given up gets no address for a pod, and takes none away.
func TestFencedGenerationCannotAttach(t *testing.T) {
	n := setUp(t)
	pods := map[uint64]string{1: newPod(t), 2: newPod(t)}
	second, first := zombie.Wake(t, func(ctx context.Context, generation uint64) error {
		_, err := n.Attach(ctx, map[uint64]string{1: "first", 2: "second"}[generation], pods[generation])
		return err
	})
	if second != nil || !errors.Is(first, supervision.ErrFenced) {
		t.Errorf("the current generation: %v, the one that was given up: %v", second, first)
	}
	_, first = zombie.Wake(t, func(ctx context.Context, generation uint64) error {
		if generation == 2 {
			return nil
		}
		return n.Detach(ctx, "second")
	})
	if !errors.Is(first, supervision.ErrFenced) {
		t.Errorf("the generation that was given up: %v", first)
	}
	if _, ok := n.pods["second"]; !ok || len(n.pods) != 1 {
		t.Errorf("the network has pods %v", n.pods)
	}
}
