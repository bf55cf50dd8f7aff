package supervision_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// poison is a member that fails of its first message for as long as the object is bad, as a
// reconciler of a poison object does.
type poison struct {
	bad   *bool
	tries *int
}

func (p poison) Receive(_ supervision.Context, msg any) error {
	if msg != "reconcile" {
		return nil
	}
	if *p.tries++; *p.bad {
		return errors.New("the object cannot be reconciled")
	}
	return nil
}

// poisonPool parks members after three faults in a minute; parked ones wait an hour.
func poisonPool(t *testing.T) (s *supervision.System, pool supervision.Pool, bad *bool, tries *int, try func()) {
	t.Helper()
	s, pool = withPool(t, func(_, tmpl *supervision.Spec) {
		tmpl.Policy[core.ErrorReturn].Backoff = core.Backoff{Initial: time.Second, Factor: 2, Cap: time.Hour, Reset: 2 * time.Hour}
	})
	bad, tries = new(bool), new(int)
	*bad = true
	try = func() {
		ref := pool.Ensure("m", func() supervision.Handler { return poison{bad, tries} })
		s.Send(ref, "reconcile")
		synctest.Wait()
	}
	return s, pool, bad, tries, try
}

// TestWakeTriesOnce holds that waking a parked member gives it one try: if it fails of its
// first message again it is parked again for as long as before, however often it is woken.
func TestWakeTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool, bad, tries, try := poisonPool(t)
		for range 4 {
			try()
			pass(30 * time.Second / 4)
		}
		if n := nodeAt(s, "root/pool/m"); n.State != core.Parked || *tries != 4 {
			t.Fatalf("after %d tries the member is %v", *tries, n.State)
		}
		for round := range 20 {
			pass(10 * time.Minute / 20)
			if !pool.Wake("m") {
				t.Fatalf("round %d: the member was not woken", round)
			}
			if pool.Wake("m") {
				t.Fatalf("round %d: a member that runs was woken", round)
			}
			try()
			n := nodeAt(s, "root/pool/m")
			if n.State != core.Parked || *tries != 5+round || !n.NextTry.Equal(time.Now().Add(time.Hour)) {
				t.Fatalf("round %d: after %d tries the member is %v until %v", round, *tries, n.State, n.NextTry)
			}
		}
		pass(59 * time.Minute)
		if n := nodeAt(s, "root/pool/m"); n.State != core.Parked {
			t.Errorf("an old timer has woken the member: %v", n.State)
		}
		*bad = false
		pool.Wake("m")
		try()
		if n := nodeAt(s, "root/pool/m"); n.State != core.Running || n.LastFault == nil {
			t.Errorf("the healed member is %+v", n)
		}
		stopped(t, s)
	})
}

// TestParkedMemberComesBackByItself holds that a parked member is tried at the cap, is shown
// with its next try until then, and after long service fails as if for the first time.
func TestParkedMemberComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, bad, tries, try := poisonPool(t)
		for range 4 {
			try()
			pass(30 * time.Second / 4)
		}
		parked := nodeAt(s, "root/pool/m")
		pass(time.Until(parked.NextTry) - time.Second)
		if n := nodeAt(s, "root/pool/m"); n.State != core.Parked || n.Generation != parked.Generation {
			t.Errorf("before its time the member is %v", n.State)
		}
		*bad = false
		pass(time.Second)
		if n := nodeAt(s, "root/pool/m"); n.State != core.Running || !n.NextTry.IsZero() {
			t.Errorf("at its time the member is %v", n.State)
		}
		pass(3 * time.Hour)
		*bad, *tries = true, 0
		try()
		if n := nodeAt(s, "root/pool/m"); n.State != core.BackingOff || n.NextTry.Sub(n.Since) != time.Second {
			t.Errorf("after long service the member is %v for %v", n.State, n.NextTry.Sub(n.Since))
		}
		stopped(t, s)
	})
}

// TestWakeMeetsOnlyWhoWaits holds what waking does in every other state.
func TestWakeMeetsOnlyWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool := withPool(t, func(_, tmpl *supervision.Spec) { tmpl.Policy[core.Panic].Do = core.DoStop })
		if pool.Wake("nobody") || s.Pool("no/such/pool").Wake("m") {
			t.Error("nobody was woken")
		}
		ref := pool.Ensure("m", talker(&journal{}, "m").Start)
		synctest.Wait()
		if pool.Wake("m") {
			t.Error("a running member was woken")
		}
		s.Send(ref, endOf(core.ErrorReturn))
		synctest.Wait()
		if n := nodeAt(s, "root/pool/m"); n.State != core.BackingOff || !pool.Wake("m") {
			t.Errorf("a member that is %v was not woken", n.State)
		}
		synctest.Wait()
		if n := nodeAt(s, "root/pool/m"); n.State != core.Running || n.Restarts != 1 {
			t.Errorf("the woken member is %+v", n)
		}
		pass(time.Minute)
		if n := nodeAt(s, "root/pool/m"); n.Restarts != 1 {
			t.Errorf("the old timer has started it again: %+v", n)
		}
		s.Send(ref, step(boom))
		synctest.Wait()
		if n := nodeAt(s, "root/pool/m"); n.State != core.Dead || pool.Wake("m") {
			t.Errorf("a member that is %v was woken", n.State)
		}
		stopped(t, s)
		if pool.Wake("m") {
			t.Error("a member of a stopped pool was woken")
		}
	})
}

// TestPoisonDoesNotSpread holds that a poison member parks alone, and that the pool's other
// members and its siblings are never touched.
func TestPoisonDoesNotSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, pool, _, _, try := poisonPool(t)
		pool.Ensure("good", talker(&journal{}, "good").Start)
		for range 50 {
			try()
			pool.Wake("m")
			pass(time.Minute)
		}
		if n := nodeAt(s, "root/pool/good"); n.State != core.Running || n.Restarts != 0 {
			t.Errorf("the other member is %+v", n)
		}
		if n := nodeAt(s, "root/pool"); n.Generation != 1 || n.LastFault != nil {
			t.Errorf("the pool is %+v", n)
		}
		stopped(t, s)
	})
}
