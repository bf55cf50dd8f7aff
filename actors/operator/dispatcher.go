package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/supervision"
)

// Waits of the dispatcher.
const (
	// dispatchBeat is the longest silence of the dispatcher's job before it counts as hanging.
	dispatchBeat = 90 * time.Second
	// sweepEvery is how often manifests without an actor are looked for.
	sweepEvery = 30 * time.Second
	// lookEvery is the longest the job waits for changes before it looks whether the pool lost its actors; retryEvery is that
	// after a wake that nobody took.
	lookEvery, retryEvery = 5 * time.Second, time.Second
)

// poolID is the path segment of the pool beside the dispatcher.
const poolID = "manifests"

// actors is the pool as the dispatcher needs it.
type actors interface {
	Ensure(id string, start func() supervision.Handler) supervision.Ref
	Send(id string, msg any) bool
	Stop(id string)
	Len() int
}

// dispatcher follows the cache and wakes the actors of the manifests that changes concern.
type dispatcher struct {
	controller *Controller
	reconciler Reconciler
	deps       Deps
	board      *board
	// missed is set when a wake was taken by nobody.
	missed bool
}

// Receive implements supervision.Handler.
func (d *dispatcher) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		pool := ctx.System().Pool(siblingOf(ctx.Path()))
		ctx.Go(supervision.Job{Name: "follow", BeatWithin: dispatchBeat, Run: func(ctx context.Context, beat func()) (any, error) {
			return nil, d.follow(ctx, pool, beat)
		}})
	case supervision.JobDone:
		if ctx.Context().Err() == nil {
			return fmt.Errorf("cannot dispatch for %s: %w", d.controller.Name, msg.Err)
		}
	}
	return nil
}

func siblingOf(path string) string {
	return path[:strings.LastIndexByte(path, '/')+1] + poolID
}

// follow wakes everything that exists, then whatever changes concern, until the context ends.
func (d *dispatcher) follow(ctx context.Context, pool actors, beat func()) error {
	feed := d.deps.Cache.Subscribe(d.kinds()...)
	defer feed.Close()
	if err := d.relist(ctx, pool); err != nil {
		return err
	}
	swept := d.deps.Clock.Now()
	for ctx.Err() == nil {
		beat()
		changes, err := d.await(ctx, feed)
		if errors.Is(err, cache.ErrLost) || err == nil && pool.Len() < d.board.len() {
			err = d.relist(ctx, pool)
		}
		if err != nil {
			return err
		}
		for key, revision := range d.controller.wakes(d.deps.Cache, changes) {
			d.wake(pool, key, revision)
		}
		d.settle(pool)
		if now := d.deps.Clock.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			d.sweep(pool)
		}
	}
	return ctx.Err()
}

// kinds lists what is read; none stands for everything.
func (d *dispatcher) kinds() []cache.Kind {
	var kinds []cache.Kind
	for _, read := range d.controller.Reads {
		if read.Kind == (cache.Kind{}) {
			return nil
		}
		if read.Keys != nil {
			kinds = append(kinds, read.Kind)
		}
	}
	return kinds
}

// await waits for changes, requests or the next look. No changes and no error when it was one of the latter.
func (d *dispatcher) await(ctx context.Context, feed *cache.Feed) ([]cache.Change, error) {
	wait := lookEvery
	if d.missed {
		wait, d.missed = retryEvery, false
	}
	quiet, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-feed.Ready():
	case <-d.board.asked:
	case <-quiet.Done():
	}
	return feed.Take()
}

// relist wakes all manifests there are and all actors there were, whatever was missed.
func (d *dispatcher) relist(ctx context.Context, pool actors) error {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	if err := d.deps.Cache.Sync(ctx); err != nil {
		return err
	}
	revision := d.deps.Cache.Revision()
	for _, key := range append(d.board.keys(), d.controller.keys(d.deps.Cache)...) {
		d.wake(pool, key, revision)
	}
	return nil
}

// sweep wakes manifests that have no actor.
func (d *dispatcher) sweep(pool actors) {
	for _, key := range d.controller.keys(d.deps.Cache) {
		if !d.board.known(key) {
			d.wake(pool, key, d.deps.Cache.Revision())
		}
	}
}

// wake tells the actor of a manifest, making it if need be; not for a manifest that is gone and has none.
func (d *dispatcher) wake(pool actors, key Key, revision int64) {
	if !d.board.known(key) && !d.controller.live(d.deps.Cache, key) {
		return
	}
	pool.Ensure(key.String(), func() supervision.Handler {
		return &manifest{controller: d.controller, reconciler: d.reconciler, deps: d.deps, key: key, board: d.board}
	})
	if !pool.Send(key.String(), wake{revision: revision, number: d.board.send(key)}) {
		d.missed = true // in back-off, where its next start brings a pass, or the pool is down, which the next look finds
	}
}

// settle ends the actors that asked for it.
func (d *dispatcher) settle(pool actors) {
	end, again := d.board.settle()
	for _, key := range end {
		pool.Stop(key.String())
	}
	for _, key := range again {
		d.wake(pool, key, d.deps.Cache.Revision())
	}
}
