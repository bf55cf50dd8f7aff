package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// Messages of the actor to itself.
type (
	tick    struct{}
	news    struct{}
	reread  struct{}
	renewal struct{ event lease.Event }
	answers struct {
		writes []lease.Write
		events []lease.Event
	}
)

// Names of the jobs.
const (
	jobRead   = "read"
	jobRenew  = "renew"
	jobAppend = "append"
	jobEnd    = "end"
)

// errEnded is the fault of an actor whose session was ended by somebody else: the next generation begins another one.
var errEnded = errors.New("cannot go on: the session was ended")

// Spec is the actor as a child of a tree.
func (s *Session) Spec() supervision.Spec {
	spec := catalog.Row("session")
	spec.Start = func() supervision.Handler { return &actor{session: s} }
	return spec
}

// actor carries out what a life decides.
type actor struct {
	session *Session
	life    *life
	feed    storage.Feed
	members storage.SessionFeed
}

// Receive implements supervision.Handler.
func (a *actor) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		a.begin(ctx)
	case supervision.Stopping:
		a.end()
		return nil
	case tick:
		ctx.After(lease.TickEvery, tick{})
		a.life.feed(lease.Tick{})
	case reread:
		a.read(ctx)
	case supervision.JobDone:
		return a.done(ctx, msg)
	}
	a.hear(ctx)
	return a.carryOut(ctx)
}

// begin starts a life. Its boot is another one in each generation, so that the leases of the one before are taken back at once.
func (a *actor) begin(ctx supervision.Context) {
	id := a.session.id
	if ctx.Generation() > 1 {
		id.Boot = fmt.Sprintf("%s.%d", id.Boot, ctx.Generation())
	}
	a.life = newLife(a.session, id, ctx.Clock(), waker(ctx))
	if a.session.present(a.life) {
		a.life.feed(lease.Stop{})
	}
	a.members = a.session.store.WatchSessions(a.life.look)
	a.read(ctx)
	a.life.feed(lease.Tick{})
	ctx.After(lease.TickEvery, tick{})
}

// waker posts news to a generation. It is a timer's and no message that somebody sent, because nobody misses it when the generation has ended:
// the next one begins with reading all.
func waker(ctx supervision.Context) func() {
	return func() { ctx.After(0, news{}) }
}

// end leaves the listeners with nothing.
func (a *actor) end() {
	if a.life == nil {
		return
	}
	a.tell(a.life.end())
	if a.life.watch != nil { // none is opened from now on
		a.life.watch.Close()
	}
	if a.members != nil {
		a.members.Close()
	}
}

func (a *actor) read(ctx supervision.Context) {
	l := a.life
	ctx.Go(supervision.Job{Name: jobRead, BeatWithin: readBeat, Run: func(ctx context.Context, beat func()) (any, error) {
		return l.read(ctx, beat, l.look)
	}})
}

// done takes the end of a job.
func (a *actor) done(ctx supervision.Context, job supervision.JobDone) error {
	switch v := job.Value.(type) {
	case storage.Feed:
		a.feed = v
	case renewal:
		a.life.feed(v.event)
	case answers:
		a.life.sent(v.writes, v.events)
		a.life.feed(v.events...)
	}
	switch {
	case job.Name == jobAppend && job.Err != nil: // what was asked for there is not known, so begin anew
		return fmt.Errorf("cannot write leases: %w", job.Err)
	case job.Name == jobEnd:
		a.session.ended()
	case job.Name == jobRead && job.Err != nil:
		ctx.Log().Warn("cannot read leases yet", "reason", job.Err)
		ctx.After(readAgain, reread{})
	}
	a.hear(ctx)
	return a.carryOut(ctx)
}

// hear takes what the store has to tell.
func (a *actor) hear(ctx supervision.Context) {
	if m, any := a.members.Take(); any {
		a.life.feed(a.life.membership(m)...)
	}
	if a.feed == nil {
		return
	}
	changes, err := a.feed.Take()
	a.life.feed(changed(changes)...)
	if err != nil {
		ctx.Log().Warn("lost the watch of leases, reading all of them", "reason", err)
		a.feed.Close()
		a.feed = nil
		ctx.After(readAgain, reread{})
	}
}

// carryOut does what was decided.
func (a *actor) carryOut(ctx supervision.Context) error {
	for _, action := range a.life.take() {
		switch action := action.(type) {
		case lease.Renew:
			a.renew(ctx, action)
		case lease.Append:
			a.life.ask(action)
		case lease.End:
			a.endSession(ctx)
		default:
			a.tell([]lease.Action{action})
		}
	}
	for writes := a.life.batch(); writes != nil; writes = a.life.batch() {
		a.append(ctx, writes)
	}
	if a.life.outcast() {
		return errEnded
	}
	return nil
}

func (a *actor) renew(ctx supervision.Context, r lease.Renew) {
	l := a.life
	ctx.Go(supervision.Job{Name: jobRenew, Deadline: renewWithin, Run: func(ctx context.Context, _ func()) (any, error) {
		event, err := l.renew(ctx, r)
		if err != nil {
			return nil, err
		}
		return renewal{event}, nil
	}})
}

func (a *actor) append(ctx supervision.Context, writes []lease.Write) {
	l := a.life
	ctx.Go(supervision.Job{Name: jobAppend, Deadline: appendWithin, Run: func(ctx context.Context, _ func()) (any, error) {
		return answers{writes, l.send(ctx, writes)}, nil
	}})
}

func (a *actor) endSession(ctx supervision.Context) {
	l := a.life
	ctx.Go(supervision.Job{Name: jobEnd, Deadline: endWithin, Run: func(ctx context.Context, _ func()) (any, error) {
		return nil, l.of.store.End(ctx, l.id)
	}})
}

// tell lets the listeners know.
func (a *actor) tell(actions []lease.Action) {
	for _, action := range actions {
		a.session.count(action)
		switch action := action.(type) {
		case lease.Gained:
			call(a.session.listeners[kindOf(action.Fence.Manifest)].Gained, action.Fence)
		case lease.Lost:
			call(a.session.listeners[kindOf(action.Fence.Manifest)].Lost, action.Fence)
		case lease.Cancel:
			if cancel := a.session.listeners[kindOf(action.Fence.Manifest)].Cancel; cancel != nil {
				cancel(action.Fence, action.Why)
			}
		}
	}
}

func call(f func(lease.Fence), with lease.Fence) {
	if f != nil {
		f(with)
	}
}
