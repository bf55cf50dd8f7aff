package standin

import (
	"context"
	"errors"
	"strings"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/core"
)

// errEnded is returned when a job ended that should not have.
var errEnded = errors.New("the job ended")

// Poke is an ordinary message of a stand-in. With Job, it has a job done.
type Poke struct{ Job bool }

// Work makes a stand-in do its work now.
type Work struct{}

type fill struct{}

// names of jobs.
const (
	jobMake   = "make"
	jobKeep   = "keep"
	jobFollow = "follow"
	jobWork   = "work"
	jobPoke   = "poke"
)

// code makes the stand-in of a worker.
func (w *World) code(path string, spec core.ChildSpec) supervision.Handler {
	h, known := Of[spec.Row]
	if !known {
		return nil
	}
	a := &actor{world: w, path: path, spec: &spec, habits: h}
	if h.Listens {
		a.port = w.listener(a)
	}
	return a
}

// Member makes the stand-in of a member of the pool at path.
func (w *World) Member(path, id string) supervision.Handler {
	return w.code(path+"/"+id, w.templates[path])
}

// actor is one generation of one stand-in.
type actor struct {
	world  *World
	path   string
	spec   *core.ChildSpec
	habits Habits
	// port is the product's own listener, on a fake network.
	port supervision.Handler
	ctx  supervision.Context
}

// Receive implements supervision.Handler.
func (a *actor) Receive(ctx supervision.Context, msg any) error {
	if a.ctx == nil {
		a.ctx = ctx // once: jobs read it too
	}
	switch m := msg.(type) {
	case supervision.Started:
		a.world.begun(ctx)
		if err := a.act(AtStart); err != nil {
			return err
		}
		a.begin()
	case supervision.Stopping:
		return a.act(AtStop)
	case Poke:
		return a.poked(m)
	case Work:
		a.work()
		return nil
	case fill:
		a.fill()
		return nil
	case supervision.JobDone:
		if a.port == nil || m.Name == jobPoke {
			return a.jobDone(m)
		}
	}
	if a.port != nil {
		return a.port.Receive(ctx, msg)
	}
	return nil
}

func (a *actor) act(at Point) error { return a.world.act(a.ctx.Context(), a.ctx, a.spec, at) }

// begin sets off what the child does by itself.
func (a *actor) begin() {
	h, ctx := a.habits, a.ctx
	if h.Makes {
		ctx.DeferReady()
		ctx.Go(supervision.Job{Name: jobMake, Deadline: makeLimit, Run: func(c context.Context, _ func()) (any, error) {
			return nil, ctx.Clock().Sleep(c, makeTakes)
		}})
	}
	if h.Follows && !h.Makes {
		a.follow()
	}
	if h.Works {
		a.work()
	}
	if h.Fills != "" {
		a.fill()
	}
	if a.world.HasMail(a.path) {
		ctx.After(MailAfter, Poke{})
	}
}

func (a *actor) poked(m Poke) error {
	if !m.Job {
		if err := a.act(AtMessage); err != nil {
			return err
		}
		a.world.handledOne(a.path)
		return nil
	}
	ctx := a.ctx
	ctx.Go(supervision.Job{Name: jobPoke, Deadline: workLimit, Run: func(c context.Context, _ func()) (any, error) {
		return nil, a.world.act(c, ctx, a.spec, AtJob)
	}})
	return nil
}

func (a *actor) jobDone(m supervision.JobDone) error {
	switch m.Name {
	case jobMake:
		return a.made(m.Err)
	case jobKeep, jobFollow:
		if a.ctx.Context().Err() == nil {
			return errors.Join(errEnded, m.Err)
		}
	case jobWork:
		return a.worked(m.Err)
	case jobPoke:
		if m.Err == nil {
			a.world.handledOne(a.path)
		}
		return m.Err
	}
	return nil
}

func (a *actor) made(err error) error {
	if err != nil {
		return err
	}
	if a.habits.Follows {
		a.follow()
	} else {
		a.keep()
	}
	a.ctx.Ready()
	return nil
}

// keep holds the thing until the child stops, or the store behind it fails.
func (a *actor) keep() {
	var lost <-chan struct{}
	if a.habits.Owns {
		lost = a.world.Store.open()
	}
	a.ctx.Go(supervision.Job{Name: jobKeep, Endless: true, Run: func(c context.Context, _ func()) (any, error) {
		select {
		case <-c.Done():
			return nil, nil
		case <-lost:
			return nil, ErrGone
		}
	}})
}

func (a *actor) follow() {
	clock := a.ctx.Clock()
	a.ctx.Go(supervision.Job{Name: jobFollow, BeatWithin: beatWithin, Run: func(c context.Context, beat func()) (any, error) {
		for clock.Sleep(c, beatEvery) == nil {
			beat()
		}
		return nil, c.Err()
	}})
}

func (a *actor) work() {
	ctx, h := a.ctx, a.habits
	ctx.Go(supervision.Job{Name: jobWork, Deadline: workLimit, Run: func(c context.Context, _ func()) (any, error) {
		if !h.Reads && !h.Writes {
			return nil, nil
		}
		return nil, a.world.Store.do(c, ctx, h.Writes)
	}})
}

func (a *actor) worked(err error) error {
	switch {
	case err == nil:
		a.ctx.After(workEvery, Work{})
	case a.habits.Strict:
		return err
	default:
		a.ctx.After(retryEvery, Work{})
	}
	return nil
}

// fill keeps the pool beside it as it should be.
func (a *actor) fill() {
	path := a.path[:strings.LastIndexByte(a.path, '/')+1] + a.habits.Fills
	pool := a.ctx.System().Pool(path)
	for _, id := range members[a.habits.Fills] {
		pool.Ensure(id, func() supervision.Handler { return a.world.Member(path, id) })
	}
	a.ctx.After(a.habits.Look, fill{})
}
