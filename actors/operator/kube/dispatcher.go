package kube

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
	Wake(id string) bool
	Stop(id string)
	Len() int
}

// dispatcher follows the cache and wakes the actors of the manifests that changes concern.
type dispatcher struct {
	controller *Controller
	reconciler Reconciler
	deps       Deps
	board      *board
	served     *served
	outage     *outage
	// mended are manifests that were woken from their back-off of late, since a change may have mended them.
	mended map[Key]mending
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
	if err := d.awaitKinds(ctx, beat); err != nil {
		return err
	}
	feed := d.deps.Cache.Subscribe(d.kinds()...)
	defer feed.Close()
	if err := d.relist(ctx, pool, beat); err != nil {
		return err
	}
	swept := d.deps.Clock.Now()
	for ctx.Err() == nil {
		beat()
		changes, err := d.await(ctx, feed)
		if errors.Is(err, cache.ErrLost) || err == nil && pool.Len() < d.board.len() {
			err = d.relist(ctx, pool, beat)
		}
		if err != nil {
			return err
		}
		d.take(pool, changes)
		d.settle(pool)
		d.payOwed(pool)
		if now := d.deps.Clock.Now(); now.Sub(swept) >= sweepEvery {
			swept = now
			d.sweep(pool)
		}
	}
	return ctx.Err()
}

// awaitKinds waits until every kind that is read is served.
func (d *dispatcher) awaitKinds(ctx context.Context, beat func()) error {
	for {
		beat()
		quiet, cancel := context.WithTimeout(ctx, sweepEvery)
		select {
		case <-d.served.all:
			cancel()
			return nil
		case <-quiet.Done():
			cancel()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// take wakes the manifests that changes concern.
func (d *dispatcher) take(pool actors, changes []cache.Change) {
	wakes := d.controller.wakes(d.deps.Cache, changes, func(key Key, change cache.Change) {
		d.deps.Breaker.woken(writerOf(d.controller.Name, key), change)
	})
	for i := range changes {
		d.judgeEnd(&changes[i])
	}
	for key, w := range wakes {
		if w.own != nil && replaces(w.own) {
			d.deps.Breaker.forgive(writerOf(d.controller.Name, key))
		}
		if !d.wake(pool, key, w.revision) && w.own != nil && mends(w.own) {
			d.mend(pool, key)
		}
	}
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

// relist wakes all manifests there are and all actors there were, whatever was missed. It waits for a source that is down: that is no
// fault of the dispatcher.
func (d *dispatcher) relist(ctx context.Context, pool actors, beat func()) error {
	for err := synced(ctx, d.deps.Cache); err != nil; err = synced(ctx, d.deps.Cache) {
		beat()
		if ctx.Err() != nil || !isOutage(err) {
			return err
		}
		if err := d.deps.Clock.Sleep(ctx, retryEvery); err != nil {
			return err
		}
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

// wake tells the actor of a manifest, making it if need be; not for a manifest that is gone and has none. False when nobody took it.
func (d *dispatcher) wake(pool actors, key Key, revision int64) bool {
	if !d.board.known(key) && !d.controller.live(d.deps.Cache, key) {
		return true
	}
	pool.Ensure(key.String(), func() supervision.Handler {
		return &manifest{controller: d.controller, reconciler: d.reconciler, deps: d.deps, key: key, board: d.board, outage: d.outage}
	})
	if !pool.Send(key.String(), wake{revision: revision, number: d.board.send(key)}) {
		d.missed = true // in back-off, where its next start brings a pass, or the pool is down, which the next look finds
		return false
	}
	return true
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
