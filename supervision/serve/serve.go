// Package serve is the actor behind every network port: it binds, serves until it is
// stopped, and reports a port that is taken with the process that holds it.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// bindTimeout bounds one attempt to get the address.
const bindTimeout = 5 * time.Second

// errEnded is returned when a server ended without being told to.
var errEnded = errors.New("the server ended without being told to")

// Config is one port.
type Config struct {
	// Network and Addr are those of net.Listen.
	Network, Addr string
	// Prepare runs before each attempt to bind; nil does nothing.
	Prepare func() error
	// Serve answers on l until ctx ends, and closes l. Returning earlier is a fault.
	Serve func(ctx context.Context, l net.Listener) error
}

// New makes the actor; it is ready at once, so that a taken port holds nothing else back.
func New(cfg Config) supervision.Handler { return &listener{cfg} }

type listener struct{ cfg Config }

// Receive implements supervision.Handler.
func (s *listener) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started:
		ctx.Go(supervision.Job{Name: "bind", Deadline: bindTimeout, Run: s.bind})
	case supervision.JobDone:
		if m.Err != nil {
			return m.Err
		}
		l, ok := m.Value.(net.Listener)
		if !ok {
			return fmt.Errorf("cannot serve %s: %w", s.cfg.Addr, errEnded)
		}
		ctx.Log().Info("serving", "addr", l.Addr().String())
		ctx.Go(supervision.Job{Name: "serve", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
			return nil, s.cfg.Serve(c, l)
		}})
	}
	return nil
}

func (s *listener) bind(ctx context.Context, _ func()) (any, error) {
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, s.cfg.Network, s.cfg.Addr)
	if err != nil {
		return nil, BindError(s.cfg.Addr, err)
	}
	return l, nil
}

// BindError describes a failed bind, with the process that holds the port if it is known.
func BindError(addr string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	if who := Holder(addr); who != "" {
		err = fmt.Errorf("%w: the port is held by %s", err, who)
	}
	return &supervision.BindError{Addr: addr, Err: err}
}
