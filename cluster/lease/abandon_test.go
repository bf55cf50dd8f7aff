package lease

import (
	"errors"
	"testing"
)

// TestAbandonedWorkIsFenced: work that would not end is not waited for, and what it does later is refused.
func TestAbandonedWorkIsFenced(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	if _, ok := r.node.Start(r.now, "m"); ok {
		t.Fatal("started beside work that runs")
	}
	r.step(Abandoned{f})
	r.pass(2 * lastStep)
	next := r.start("m")
	if next.Epoch != f.Epoch+1 {
		t.Fatalf("the next work has epoch %d after %d", next.Epoch, f.Epoch)
	}
	if err := f.Check(r.records["m"].Record); !errors.Is(err, ErrFenced) {
		t.Errorf("what was abandoned may write: %v", err)
	}
	r.step(Done{f})
	if _, ok := r.node.Start(r.now, "m"); ok {
		t.Error("the end of what was abandoned counts as that of the next work")
	}
	r.step(Done{next})
	r.start("m")
}

// TestAbandonedWorkDoesNotHoldUpAStop: a node that leaves does not wait for it.
func TestAbandonedWorkDoesNotHoldUpAStop(t *testing.T) {
	r := newRig(t, "m")
	f := r.start("m")
	r.step(Abandoned{f})
	r.step(Stop{})
	if !r.node.Ended() || !r.records["m"].Free() {
		t.Errorf("ended %t, the lease is %+v", r.node.Ended(), r.records["m"])
	}
}
