package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/memberlist"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// Member makes the actor of one host's membership. It is ready once it listens; onChange gets
// each new list of members, one call at a time, and must not block.
func Member(cfg Config, view *View, onChange func([]Node)) supervision.Handler {
	return &member{cfg: cfg, view: view, onChange: onChange}
}

type member struct {
	cfg      Config
	view     *View
	onChange func([]Node)
	list     *memberlist.Memberlist
	delegate *delegate
	// reading: a job reads the list. again: it has changed meanwhile.
	reading, again bool
}

// changed tells the actor that the list of members is another one.
type changed struct{}

// SetMeta asks a Member to announce other metadata.
type SetMeta struct{ Meta Meta }

// Receive implements supervision.Handler.
func (m *member) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		ctx.DeferReady()
		return m.create(ctx)
	case changed:
		m.read(ctx)
	case SetMeta:
		return m.announce(ctx, msg.Meta)
	case supervision.JobDone:
		return m.done(ctx, msg)
	}
	return nil
}

// create gets the sockets in a job. Until then the delegate's word falls on deaf ears, which
// is why the list is read once afterwards.
func (m *member) create(ctx supervision.Context) error {
	meta, err := m.cfg.Meta.Encode()
	if err != nil {
		return err
	}
	self, system := ctx.Self(), ctx.System()
	m.delegate = &delegate{changed: func() { system.Send(self, changed{}) }}
	m.delegate.meta.Store(&meta)
	cfg, err := m.cfg.memberlist(m.delegate)
	if err != nil {
		return err
	}
	ctx.Go(supervision.Job{Name: "create", Deadline: createTimeout, Run: func(c context.Context, _ func()) (any, error) {
		if err := bindable(c, m.cfg); err != nil {
			return nil, err
		}
		l, err := memberlist.Create(cfg)
		if err != nil {
			return nil, fmt.Errorf("cannot take part in gossip at %s: %w", m.cfg.Bind, err)
		}
		return l, nil
	}})
	return nil
}

// bindable tries the address first: memberlist's own error hides the cause.
func bindable(ctx context.Context, cfg Config) error {
	if cfg.Transport != nil {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.Bind.String())
	if err != nil {
		return serve.BindError(cfg.Bind.String(), err)
	}
	return l.Close()
}

func (m *member) done(ctx supervision.Context, job supervision.JobDone) error {
	switch job.Name {
	case "create":
		if job.Err != nil {
			return job.Err
		}
		m.list = job.Value.(*memberlist.Memberlist)
		m.view.list.Store(m.list)
		m.keep(ctx)
		m.read(ctx)
		ctx.Ready()
	case "read":
		m.reading = false
		if now, ok := job.Value.([]Node); ok && m.onChange != nil {
			m.onChange(now)
		}
		if m.again {
			m.read(ctx)
		}
	}
	return nil
}

// keep holds the membership until the actor stops: then the others are told, and the sockets
// are closed.
func (m *member) keep(ctx supervision.Context) {
	list, view := m.list, m.view
	ctx.Go(supervision.Job{Name: "keep", Endless: true, Run: func(c context.Context, _ func()) (any, error) {
		<-c.Done()
		view.list.CompareAndSwap(list, nil)
		return nil, errors.Join(list.Leave(leaveTimeout), list.Shutdown())
	}})
}

// read takes the list anew, in a job because it waits for memberlist's lock.
func (m *member) read(ctx supervision.Context) {
	if m.list == nil || m.reading {
		m.again = m.list != nil
		return
	}
	m.reading, m.again = true, false
	list, view := m.list, m.view
	ctx.Go(supervision.Job{Name: "read", Deadline: viewTimeout, Run: func(context.Context, func()) (any, error) {
		if now, changed := view.read(list); changed {
			return now, nil
		}
		return nil, nil
	}})
}

// announce publishes other metadata of this host.
func (m *member) announce(ctx supervision.Context, meta Meta) error {
	b, err := meta.Encode()
	if err != nil {
		ctx.Log().Warn("metadata not announced", "err", err)
		return nil
	}
	m.cfg.Meta = meta
	m.delegate.meta.Store(&b)
	if list := m.list; list != nil {
		ctx.Go(supervision.Job{Name: "announce", Deadline: viewTimeout, Run: func(context.Context, func()) (any, error) {
			return nil, list.UpdateNode(leaveTimeout)
		}})
	}
	return nil
}
