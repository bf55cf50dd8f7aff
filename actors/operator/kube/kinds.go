package kube

import (
	"context"
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
)

// waitingFor begins the name of the job that waits for a kind; it is what the tree shows.
const waitingFor = "WaitingForKind "

// served tells the dispatcher that every kind its controller reads is served. It outlives generations of both.
type served struct {
	once sync.Once
	all  chan struct{}
}

func newServed() *served { return &served{all: make(chan struct{})} }

// note says so, once.
func (s *served) note() { s.once.Do(func() { close(s.all) }) }

// kindWatch waits until the API serves each kind that a controller declares to read. A kind that is missing holds up its own controller
// and nothing else: the actor runs, and says in the name of its job what it waits for.
type kindWatch struct {
	controller *Controller
	deps       Deps
	served     *served
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
		k.next(ctx)
	}
	return nil
}

// next waits for the first kind that is missing, or tells that there is none.
func (k *kindWatch) next(ctx supervision.Context) {
	kind, missing := k.missing()
	if !missing {
		k.served.note()
		return
	}
	ctx.Go(supervision.Job{Name: waitingFor + kind.Resource.GroupResource().String(), BeatWithin: kindBeat, Run: func(ctx context.Context, beat func()) (any, error) {
		return nil, k.await(ctx, kind, beat)
	}})
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
