package supervision_test

import (
	"context"
	"net"
)

// acceptUntilEnd serves connections by closing them, until its context ends.
func acceptUntilEnd(serving chan<- struct{}) func(context.Context, net.Listener) error {
	return func(ctx context.Context, l net.Listener) error {
		stop := context.AfterFunc(ctx, func() { l.Close() })
		defer stop()
		serving <- struct{}{}
		for {
			c, err := l.Accept()
			if err != nil {
				return ctx.Err()
			}
			c.Close()
		}
	}
}
