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
	// probeEvery is the pause between two requests of a listener to itself: few enough to cost an idle node nothing.
	probeEvery = 10 * time.Second
	// probeWithin is how long such requests may stay without an answer.
	probeWithin = 30 * time.Second
	// probeSoon is the pause after a request that was not answered.
	probeSoon = 50 * time.Millisecond
	// probeTries is how many requests are lost before a listener hangs.
	probeTries = 3
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

// New makes the actor. It is ready once it is bound and has answered its own first request, so that whoever sees it
// running can call it; a taken port holds nothing else back.
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
		ctx.DeferReady()
		generation := ctx.Context()
		ctx.Go(supervision.Job{Name: "bind", Deadline: bindTimeout, Run: func(c context.Context, _ func()) (any, error) {
			return s.bind(c, generation)
		}})
	case supervision.JobDone:
		if m.Err != nil {
			return m.Err
		}
		l, ok := m.Value.(net.Listener)
		if !ok {
			return fmt.Errorf("cannot serve %s: %w", s.cfg.Addr, errEnded)
		}
		ctx.Log().Info("serving", "addr", l.Addr().String())
		ctx.Go(s.serveJob(ctx, l))
		if s.cfg.Probe == nil {
			ctx.Ready()
		}
	}
	return nil
}

// serveJob serves on l, beating for as long as the server answers its own requests.
func (s *listener) serveJob(own supervision.Context, l net.Listener) supervision.Job {
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
		probes.Go("probe", func(ctx context.Context) error { return s.probe(ctx, own, l.Addr(), beat) })
		return nil, s.cfg.Serve(ctx, l)
	}
	return job
}

// probe beats after each request that was answered; what was not answered is simply no beat.
func (s *listener) probe(ctx context.Context, own supervision.Context, addr net.Addr, beat func()) error {
	for {
		pause := probeSoon
		one, cancel := context.WithTimeout(ctx, s.cfg.ProbeWithin/probeTries)
		err := s.cfg.Probe(one, addr)
		cancel()
		if err == nil {
			beat()
			own.Ready()
			pause = s.cfg.ProbeEvery
		}
		if own.Clock().Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// bind gets the address. The socket is closed with the generation, whatever its server does, so that the next can have it.
func (s *listener) bind(ctx, generation context.Context) (any, error) {
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(); err != nil {
			return nil, err
		}
	}
	l, err := s.cfg.Listen(ctx, s.cfg.Network, s.cfg.Addr)
	if err != nil {
		return nil, BindError(s.cfg.Addr, err)
	}
	context.AfterFunc(generation, func() { l.Close() })
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
