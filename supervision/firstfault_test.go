package supervision_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// TestAGenerationFailsOfItsFirstFault holds that what is shown as the cause is what the policy
// was applied to, and not what went wrong in the stop after it.
func TestAGenerationFailsOfItsFirstFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys, err := supervision.New(supervision.Config{})
		if err != nil {
			t.Fatal(err)
		}
		failing := spec("w", func() supervision.Handler {
			return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
				if _, stopping := msg.(supervision.Stopping); stopping && ctx.Generation() == 1 {
					panic("while stopping")
				}
				if msg == "fail" {
					return &supervision.BindError{Addr: "here", Err: errors.New("taken")}
				}
				return nil
			})
		})
		if err := sys.Start(sup("root", core.OneForOne, failing)); err != nil {
			t.Fatal(err)
		}
		var waits []supervision.Change
		sys.Watch(func(c supervision.Change) {
			if c.To == core.BackingOff {
				waits = append(waits, c)
			}
		})
		sys.Send(sys.Ref("root/w"), "fail")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(waits) != 1 || waits[0].Fault == nil || waits[0].Fault.Kind != supervision.BindFailure {
			t.Errorf("the child waits after %+v", waits)
		}
		if n := len(sys.Faults().Recent()); n != 2 {
			t.Errorf("%d faults were recorded, not both", n)
		}
		sys.Stop(t.Context())
	})
}
