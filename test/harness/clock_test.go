package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestJump holds that a wall clock which is moved neither looks like a hang nor holds up
// timers or a back-off.
func TestJump(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		harness.Sim(t, func(k *harness.Kit) {
			p := k.Probe("p")
			k.Tree(harness.Group("root", harness.OneForOne, harness.Actor("a", func(ctx supervision.Context, msg any) error {
				if _, ok := msg.(supervision.Started); ok {
					ctx.After(time.Minute, "late")
					ctx.Go(supervision.Job{Name: "slow", BeatWithin: 5 * time.Second, Run: func(c context.Context, _ func()) (any, error) {
						return nil, ctx.Clock().Sleep(c, 4*time.Second)
					}})
				}
				if msg == "late" {
					ctx.Send(p.Ref(), msg)
				}
				return nil
			})))
			before := k.Clock().Now()
			k.Advance(time.Second)
			k.Jump(by)
			k.Advance(time.Second)
			if now := k.Clock().Now(); now.Sub(before) != 2*time.Second || now.Unix()-before.Unix() != int64(by/time.Second)+2 {
				k.Errorf("the clock shows %v after %v", now, before)
			}
			p.ExpectNone()
			k.Advance(58 * time.Second)
			p.Expect("late")
		}, harness.Seeds(20))
	}
}
