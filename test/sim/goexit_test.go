package sim

import (
	"runtime"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestGoexitOfAMember holds that a message whose handler ends its goroutine is lost once: a pool
// stops its member at once, so there is more to do for the mailbox.
func TestGoexitOfAMember(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		sys := k.Tree(harness.Group("root", harness.OneForOne, harness.Pool("pool", harness.Worker("member", nil))))
		sys.Pool("root/pool").Ensure("a", func() supervision.Handler {
			return supervision.HandlerFunc(func(_ supervision.Context, msg any) error {
				if msg == "end" {
					runtime.Goexit()
				}
				return nil
			})
		})
		k.Expect("root/pool/a", supervision.Panic)
		k.Send("root/pool/a", "end")
		k.Advance(time.Minute)
	}, harness.Seeds(50), harness.Steps(10_000))
}
