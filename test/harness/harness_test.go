package harness_test

import (
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

func TestSmoke(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		p := k.Probe("p")
		k.Tree(harness.Group("root", harness.OneForOne, harness.Actor("echo", func(ctx supervision.Context, msg any) error {
			if s, ok := msg.(string); ok {
				ctx.Send(p.Ref(), s+"!")
			}
			return nil
		})))
		k.Send("root/echo", "hi")
		p.Expect("hi!")
		k.Expect("root/echo", supervision.Panic)
		k.Inject("root/echo", 1, supervision.Panic)
		k.Send("root/echo", "hi")
		p.ExpectNone()
		k.Advance(time.Second)
		k.Send("root/echo", "hi")
		p.Expect("hi!")
		k.Expect("root/echo", supervision.Hang)
		k.Inject("root/echo", 1, supervision.Hang)
		k.Send("root/echo", "hi")
		k.Advance(time.Minute)
		p.ExpectNone()
		k.Send("root/echo", "ho")
		p.Expect("ho!")
		k.Steady(time.Minute)
	})
}
