package standin

import (
	"context"
	"net"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// listener is the product's actor behind a port, on a network that exists only here.
func (w *World) listener(a *actor) supervision.Handler {
	return serve.New(serve.Config{
		Network: "fake", Addr: a.path,
		Listen: func(ctx context.Context, _, _ string) (net.Listener, error) {
			if err := w.act(ctx, a.ctx, a.spec, AtBind); err != nil {
				return nil, err
			}
			return newPort(), nil
		},
		Serve: func(ctx context.Context, l net.Listener) error {
			stop := context.AfterFunc(ctx, func() { l.Close() })
			defer stop()
			for {
				if _, err := l.Accept(); err != nil {
					return err
				}
			}
		},
	})
}

// port is a listener that nobody calls.
type port struct {
	once   sync.Once
	closed chan struct{}
}

func newPort() *port { return &port{closed: make(chan struct{})} }

// Accept waits until the port is closed.
func (p *port) Accept() (net.Conn, error) {
	<-p.closed
	return nil, net.ErrClosed
}

// Close ends Accept.
func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr names the port.
func (p *port) Addr() net.Addr { return &net.UnixAddr{Name: "fake", Net: "fake"} }
