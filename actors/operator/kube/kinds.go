package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/supervision"
)

// Waits for kinds.
const (
	// kindBeat is the longest silence of the watch for a kind before it counts as hanging.
	kindBeat = 90 * time.Second
	// kindLook is the longest it waits for news of definitions before it looks by itself.
	kindLook = 30 * time.Second
	// kindRetry is the first wait after a definition could not be written; it doubles up to kindLook.
	kindRetry = time.Second
)

// What the names of the jobs begin with; it is what the tree shows.
const (
	// waitingFor is a wait for a kind.
	waitingFor = "WaitingForKind "
	// defining makes a kind known to the API; takenKind waits for a definition that belongs to somebody else to change.
	defining  = "DefiningKind "
	takenKind = "DefinitionTaken "
)

// ErrDefinitionTaken is returned when the definition of a kind belongs to somebody else.
var ErrDefinitionTaken = errors.New("the definition belongs to somebody else")

// served tells the engine that every kind its controller reads is served. It outlives generations.
type served struct {
	mu     sync.Mutex
	all    bool
	notify func()
}

func newServed() *served { return &served{notify: func() {}} }

// note says so.
func (s *served) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
	s.notify()
}

// yes tells whether it was said.
func (s *served) yes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// listen has notify called when it is said.
func (s *served) listen(notify func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
}

// kindWatch waits until the API serves each kind that a controller declares to read. A kind that is missing holds up its own controller
// and nothing else: the actor runs, and says in the name of its job what it waits for.
type kindWatch struct {
	controller *Controller
	deps       Deps
	served     *served
	// undefined is why the kind could not be made known, nil before the first try.
	undefined error
	defined   bool
	retry     time.Duration
}

// Receive implements supervision.Handler.
func (k *kindWatch) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		k.next(ctx)
	case supervision.JobDone:
		if msg.Err != nil && ctx.Context().Err() == nil {
			return fmt.Errorf("cannot wait for the kinds of %s: %w", k.controller.Name, msg.Err)
		}
		k.learn(msg.Value)
		k.next(ctx)
	}
	return nil
}

// learn takes what a try to make the kind known came to.
func (k *kindWatch) learn(result any) {
	if tried, ok := result.(definition); ok {
		k.defined, k.undefined = tried.err == nil, tried.err
	}
}

// definition is what a try to make a kind known came to.
type definition struct{ err error }

// next makes the controller's own kind known, then waits for the first kind that is missing, or tells that there is none.
func (k *kindWatch) next(ctx supervision.Context) {
	if k.controller.Define != nil && !k.defined {
		k.define(ctx)
		return
	}
	kind, missing := k.missing()
	if !missing {
		k.served.note()
		return
	}
	ctx.Go(supervision.Job{Name: waitingFor + kind.Resource.GroupResource().String(), BeatWithin: kindBeat, Run: func(ctx context.Context, beat func()) (any, error) {
		return nil, k.await(ctx, kind, beat)
	}})
}

// define tries to make the kind known. After a failure it waits first.
func (k *kindWatch) define(ctx supervision.Context) {
	why, name := k.undefined, defining
	if errors.Is(why, ErrDefinitionTaken) {
		name = takenKind
	}
	k.retry = min(max(2*k.retry, kindRetry), kindLook)
	wait := k.retry
	ctx.Go(supervision.Job{Name: name + k.controller.Manifests.Resource.GroupResource().String(), BeatWithin: kindBeat, Run: func(ctx context.Context, beat func()) (any, error) {
		feed := k.deps.Cache.Subscribe(cache.Definitions)
		defer feed.Close()
		switch {
		case errors.Is(why, ErrDefinitionTaken):
			quiet, cancel := context.WithTimeout(ctx, kindLook)
			defer cancel()
			_, _ = feed.Next(quiet)
		case why != nil:
			_ = k.deps.Clock.Sleep(ctx, wait)
		}
		beat()
		return definition{k.defineOnce(ctx, why)}, ctx.Err()
	}})
}

// defineOnce is one try; its error is told when it is another than before.
func (k *kindWatch) defineOnce(ctx context.Context, before error) error {
	ctx, cancel := context.WithTimeout(ctx, kindLook)
	defer cancel()
	err := k.controller.Define(ctx)
	if err != nil && (before == nil || err.Error() != before.Error()) {
		k.deps.Log.Warn("a controller waits until its kind can be defined", "controller", k.controller.Name, "cause", err)
	}
	return err
}

func (k *kindWatch) missing() (cache.Kind, bool) {
	for _, read := range k.controller.Reads {
		if !k.deps.Cache.Served(read.Kind) {
			return read.Kind, true
		}
	}
	return cache.Kind{}, false
}

// await returns when a kind is served.
func (k *kindWatch) await(ctx context.Context, kind cache.Kind, beat func()) error {
	feed := k.deps.Cache.Subscribe(cache.Definitions)
	defer feed.Close()
	for !k.deps.Cache.Served(kind) {
		beat()
		quiet, cancel := context.WithTimeout(ctx, kindLook)
		_, _ = feed.Next(quiet) // lost changes, too, are a reason to look again
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
