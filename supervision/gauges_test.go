package supervision_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestMessagesAreCountedOverAllGenerations holds that no count goes down when a generation or a
// member goes, and that dead letters are counted by reason.
func TestMessagesAreCountedOverAllGenerations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taker := func() supervision.Handler {
			return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
				if err, ok := msg.(error); ok {
					return err
				}
				return nil
			})
		}
		s, pool, tmpl := newSystem(t), sup("pool", core.Pool), spec("member", taker)
		pool.Template = &tmpl
		must(t, s.Start(sup("root", core.OneForOne, spec("a", taker), pool)))
		members := s.Pool("root/pool")
		for _, id := range []string{"x", "y"} {
			s.Send(members.Ensure(id, taker), 1)
		}
		s.Send(s.Ref("root/a"), 1)
		s.Send(s.Ref("root/a"), errors.New("it fails"))
		synctest.Wait()
		before := s.Handled()
		members.Stop("x")
		synctest.Wait()
		after := s.Handled()
		// Started, two messages and Stopping; Started and one message of each member.
		if before["root/a"] != 4 || before["root/pool/*"] != 4 {
			t.Errorf("counted %v", before)
		}
		if after["root/pool/*"] != 5 {
			t.Errorf("after one of the members has gone there are %d", after["root/pool/*"])
		}
		s.Send(members.Ensure("y", taker), 1)
		members.Send("x", 1)
		if got := s.DeadLettersByReason()["the child is not running"]; got != 1 {
			t.Errorf("%v", s.DeadLettersByReason())
		}
		if s.Zombies() != 0 || s.LastCPU() != nil {
			t.Errorf("%d zombies, CPU %v", s.Zombies(), s.LastCPU())
		}
		stopped(t, s)
	})
}
