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

const (
	// bindTimeout bounds one attempt to get the address.
	bindTimeout = 5 * time.Second
	// probeEvery is the pause between two requests of a listener to itself.
	probeEvery = 5 * time.Second
	// probeWithin is how long such requests may stay without an answer.
	probeWithin = 30 * time.Second
)

// errEnded is returned when a server ended without being told to.
var errEnded = errors.New("the server ended without being told to")

// Config is one port.
type Config struct {
	// Network and Addr are those of net.Listen.
	Network, Addr string
	// Listen binds; nil is that of package net.
	Listen func(ctx context.Context, network, addr string) (net.Listener, error)
	// Prepare runs before each attempt to bind; nil does nothing.
	Prepare func() error
	// Serve answers on l until ctx ends, and closes l. Returning earlier is a fault.
	Serve func(ctx context.Context, l net.Listener) error
	// Probe asks the server something through its socket, within ctx; nil asks nothing. A
	// listener that does not answer for ProbeWithin hangs. Both times default when zero.
	Probe                   func(ctx context.Context, addr net.Addr) error
	ProbeEvery, ProbeWithin time.Duration
}

// New makes the actor; it is ready at once, so that a taken port holds nothing else back.
func New(cfg Config) supervision.Handler {
	if cfg.ProbeEvery <= 0 {
		cfg.ProbeEvery = probeEvery
	}
	if cfg.ProbeWithin <= 0 {
		cfg.ProbeWithin = probeWithin
	}
	if cfg.Listen == nil {
		cfg.Listen = new(net.ListenConfig).Listen
	}
	return &listener{cfg}
}

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
		ctx.Go(s.serveJob(ctx.Clock(), l))
	}
	return nil
}

// serveJob serves on l, beating for as long as the server answers its own requests.
func (s *listener) serveJob(clock supervision.Clock, l net.Listener) supervision.Job {
	job := supervision.Job{Name: "serve", Endless: true}
	if s.cfg.Probe != nil {
		job.BeatWithin = s.cfg.ProbeWithin
	}
	job.Run = func(ctx context.Context, beat func()) (any, error) {
		if s.cfg.Probe == nil {
			return nil, s.cfg.Serve(ctx, l)
		}
		probes := supervision.NewGroup(ctx, "probe "+s.cfg.Addr, nil)
		defer probes.Wait()
		defer probes.Cancel()
		probes.Go("probe", func(ctx context.Context) error { return s.probe(ctx, clock, l.Addr(), beat) })
		return nil, s.cfg.Serve(ctx, l)
	}
	return job
}

// probe beats after each request that was answered; what was not answered is simply no beat.
func (s *listener) probe(ctx context.Context, clock supervision.Clock, addr net.Addr, beat func()) error {
	for clock.Sleep(ctx, s.cfg.ProbeEvery) == nil {
		one, cancel := context.WithTimeout(ctx, s.cfg.ProbeWithin)
		err := s.cfg.Probe(one, addr)
		cancel()
		if err == nil {
			beat()
		}
	}
	return nil
}

func (s *listener) bind(ctx context.Context, _ func()) (any, error) {
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(); err != nil {
			return nil, err
		}
	}
	l, err := s.cfg.Listen(ctx, s.cfg.Network, s.cfg.Addr)
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
