package engine

import (
	"context"
	"net"
	"sync"
)

// relay hands the connections of one socket to one server after another, so that the socket stays bound while servers come and go.
type relay struct {
	net.Listener
	conns chan net.Conn
	ended chan struct{}
	err   error
}

// newRelay relays l; the caller runs it.
func newRelay(l net.Listener) *relay {
	return &relay{Listener: l, conns: make(chan net.Conn), ended: make(chan struct{})}
}

// run accepts until the socket is closed.
func (r *relay) run(ctx context.Context) error {
	defer close(r.ended)
	for {
		c, err := r.Listener.Accept()
		if err != nil {
			r.err = err
			return err
		}
		select {
		case r.conns <- c:
		case <-ctx.Done():
			_ = c.Close()
		}
	}
}

// turn is the listener of one server; closing it leaves the socket open.
func (r *relay) turn() net.Listener { return &turn{relay: r, over: make(chan struct{})} }

type turn struct {
	*relay
	once sync.Once
	over chan struct{}
}

// Accept implements net.Listener.
func (t *turn) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.over:
		return nil, net.ErrClosed
	case <-t.ended:
		return nil, t.err
	}
}

// Close implements net.Listener.
func (t *turn) Close() error {
	t.once.Do(func() { close(t.over) })
	return nil
}
