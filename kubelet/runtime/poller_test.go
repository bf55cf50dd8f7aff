package runtime

import (
	"context"
	"testing"
	"time"
)

// TestPollRestsAfterAnotherPollEnded holds that a successor of a poll that was cancelled waits for
// events instead of spinning on the wake-up of its predecessor.
func TestPollRestsAfterAnotherPollEnded(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	e := &Engine{poll: p}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Poll(ended, nil); err == nil {
		t.Error("a poll whose context has ended goes on")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	turns := 0
	if err := e.Poll(ctx, func() { turns++ }); err == nil {
		t.Error("a poll ended without its context")
	}
	if turns > 3 {
		t.Errorf("%d turns in 200 ms without any event", turns)
	}
}
