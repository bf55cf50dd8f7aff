package server

import (
	"context"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
	"github.com/nodeactor/nodeactor/supervision"
)

// group makes a group of guarded goroutines that ends with ctx.
func (s *server) group(ctx context.Context, name string) *supervision.Group {
	return supervision.NewGroup(ctx, name, func(f supervision.Fault) {
		if s.Panicked != nil {
			s.Panicked(name, f)
		}
	})
}

// sizes hands terminal sizes on in the runtime's own type until stop is called.
func (s *server) sizes(ctx context.Context, from <-chan remotecommand.TerminalSize) (<-chan runtime.TermSize, func()) {
	if from == nil {
		return nil, func() {}
	}
	to := make(chan runtime.TermSize, 1)
	g := s.group(ctx, "resize")
	g.Go("resize", func(ctx context.Context) error {
		defer close(to)
		for {
			select {
			case <-ctx.Done():
				return nil
			case size, ok := <-from:
				if !ok {
					return nil
				}
				select {
				case to <- runtime.TermSize{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return nil
				}
			}
		}
	})
	return to, g.Cancel
}
