package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/session"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Bounds of a stop.
const (
	// leaveTimeout is how long a graceful stop waits for the session to end: passes have lease.StopWait of it to end.
	leaveTimeout = lease.StopWait + 5*time.Second
	// stopTimeout is how long the tree has to stop then.
	stopTimeout = time.Minute
)

// ErrUnstopped is returned when passes would not end when the process stopped. The text names them.
var ErrUnstopped = errors.New("passes would not end")

// Execution is control planes being executed by one process. Execute is all that most programs need of it; tests and hosts of their own take
// its steps apart.
type Execution struct {
	opts options
	// boot names this run of the process among all that began with the same plane.
	boot   string
	hosts  []*host
	system *supervision.System
}

// Execute runs planes of several kinds in one process until ctx ends, as ControlPlane.Execute does one. ErrKindTaken is returned when two are
// of one kind, or one executes already. What they have in common, as the name of the node, is what the options of the first say.
func Execute(ctx context.Context, planes ...Plane) error {
	e, err := NewExecution(planes...)
	if err != nil {
		return err
	}
	if err := e.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return e.Stop(context.WithoutCancel(ctx))
	case exit := <-e.system.Done():
		return errors.Join(fmt.Errorf("cannot go on: %w", exit.Fault), e.Stop(context.WithoutCancel(ctx)))
	}
}

// NewExecution puts planes together, without starting anything.
func NewExecution(planes ...Plane) (*Execution, error) {
	if len(planes) == 0 {
		return nil, errors.New("cannot execute: there is no control plane")
	}
	first := planes[0].plane()
	e := &Execution{opts: first.opts, boot: first.nextBoot()}
	for _, p := range planes {
		if err := p.plane().hollow; err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.hosts, func(h *host) bool { return h.kind == p.Kind() }) {
			return nil, fmt.Errorf("cannot execute two operators of %s: %w", p.Kind(), ErrKindTaken)
		}
		e.add(p)
	}
	return e, nil
}

// add makes the host of a plane, and its session.
func (e *Execution) add(p Plane) {
	core := p.plane()
	h := newHost(core, session.New(peers{core.store, core.kind}, sessionID(e.opts.node, e.boot, core.kind)))
	e.hosts = append(e.hosts, h)
}

// Spec is the supervised tree:
//
//	operators
//	└─ kinds
//	   └─ <kind>
//	      ├─ session      the leases that this process holds
//	      ├─ manifests    pool, one actor for each manifest that has something to do
//	      ├─ dispatcher   wakes them
//	      ├─ index        follows the store
//	      └─ reporter     stores what a failed actor cannot say itself
func (e *Execution) Spec() supervision.Spec {
	root, kinds := catalog.Row("node"), catalog.Row("controllers")
	root.ID, kinds.ID = "operators", "kinds"
	for _, h := range e.hosts {
		kinds.Children = append(kinds.Children, h.spec())
	}
	root.Children = []supervision.Spec{kinds}
	return root
}

// spec is the subtree of one kind.
func (h *host) spec() supervision.Spec {
	group := h.engine.Spec()
	children := append([]supervision.Spec{h.session.Spec()}, group.Children...)
	group.Children = append(children, h.followerSpec(), h.reporterSpec())
	return group
}

// Start makes the system and starts the tree. It returns when every actor has begun, which does not wait for the store. ErrKindTaken is
// returned when one of the planes executes already; it may be executed again when that execution has stopped.
func (e *Execution) Start() error {
	if err := e.take(); err != nil {
		return err
	}
	err := e.begin()
	if err != nil {
		e.release()
	}
	return err
}

// take makes the planes this execution's, all or none.
func (e *Execution) take() error {
	for i, h := range e.hosts {
		if !h.by.CompareAndSwap(nil, e) {
			for _, taken := range e.hosts[:i] {
				taken.by.Store(nil)
			}
			return fmt.Errorf("cannot execute the control plane of %s, which executes already: %w", h.kind, ErrKindTaken)
		}
	}
	for _, h := range e.hosts {
		h.plane.host.Store(h)
	}
	return nil
}

// release lets others execute the planes.
func (e *Execution) release() {
	for _, h := range e.hosts {
		h.by.CompareAndSwap(e, nil)
	}
}

// begin makes the system and starts the tree.
func (e *Execution) begin() error {
	cfg := e.opts.system
	cfg.Clock, cfg.Log = e.opts.clock, e.opts.log
	system, err := supervision.New(cfg)
	if err != nil {
		return fmt.Errorf("cannot execute: %w", err)
	}
	if e.opts.adopt != nil {
		e.opts.adopt(system)
	}
	e.system = system
	if err := system.Start(e.Spec()); err != nil {
		return fmt.Errorf("cannot execute: %w", err)
	}
	return nil
}

// System is what the tree runs on; nil before Start.
func (e *Execution) System() *supervision.System { return e.system }

// Leave begins the graceful stop: passes are called off, and each lease is given back when its pass has ended. It returns at once.
func (e *Execution) Leave() {
	for _, h := range e.hosts {
		h.session.Leave()
	}
}

// Left tells whether the sessions are over: no lease is held any more, or passes would not end in time.
func (e *Execution) Left() bool {
	return !slices.ContainsFunc(e.hosts, func(h *host) bool { return !h.session.Stats().Left })
}

// Stop leaves, waits for that, and stops the tree. ErrUnstopped is returned when passes would not end.
func (e *Execution) Stop(ctx context.Context) error {
	defer e.release()
	e.Leave()
	e.awaitLeft(ctx)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	report := e.system.Stop(ctx)
	if len(report.Unstopped) > 0 {
		return fmt.Errorf("cannot stop in order: %w: %s", ErrUnstopped, strings.Join(report.Unstopped, ", "))
	}
	return nil
}

// awaitLeft waits for the sessions to be over, for leaveTimeout at most: a store that is away cannot end them.
func (e *Execution) awaitLeft(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	for _, h := range e.hosts {
		select {
		case <-h.session.Left():
		case <-ctx.Done():
		}
	}
}
