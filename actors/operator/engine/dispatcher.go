package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Waits of the dispatcher.
const (
	// lookEvery is how often it looks whether the pool lost its actors; retryEvery is that after a wake that nobody took, and how often it
	// asks a source again that did not answer.
	lookEvery, retryEvery = 5 * time.Second, time.Second
	// syncDeadline bounds the wait for a source before its manifests are listed.
	syncDeadline = 20 * time.Second
	// chunk is how many wakes it gives out before it looks what else there is to do.
	chunk = 512
)

// syncJob is the name of the job that waits for the source.
const syncJob = "sync"

// PoolID is the path segment of the pool beside the dispatcher.
const PoolID = "manifests"

// round makes the dispatcher look at all there is to do.
type round struct{}

// actors is the pool as the dispatcher needs it.
type actors interface {
	Ensure(id string, start func() supervision.Handler) supervision.Ref
	Send(id string, msg any) bool
	Wake(id string) bool
	Stop(id string)
	Len() int
}

// dispatcher takes wakes from the source and hands them to the actors of the manifests. It does everything in one message, round, which
// the source, the board and the clock send.
type dispatcher struct {
	*Engine
	pool    actors
	feed    Feed
	unwatch func()
	// ring asks for a round; rung is set while one is on its way.
	ring func()
	rung atomic.Bool
	// todo are wakes to give out.
	todo []Wake
	// listed is set once the manifests were listed, listing while the source is waited for before.
	listed, listing bool
	// missed is set when a wake was taken by nobody.
	missed bool
	// mended are manifests that were woken from their back-off of late, since a change may have mended them.
	mended map[Key]mending
	// looked and swept are when it last looked for lost actors and for missed wakes; retry is when the source may be asked again.
	looked, swept, retry time.Time
	// disarm cancels the armed round; armed is when it comes.
	disarm func()
	armed  time.Time
}

// Receive implements supervision.Handler.
func (d *dispatcher) Receive(ctx supervision.Context, msg any) error {
	switch msg := msg.(type) {
	case supervision.Started:
		d.start(ctx)
	case supervision.Stopping:
		d.stop()
		return nil
	case supervision.JobDone:
		d.synced(ctx, msg)
	}
	d.rung.Store(false)
	return d.round(ctx)
}

func (d *dispatcher) start(ctx supervision.Context) {
	base := ctx.Path()[:strings.LastIndexByte(ctx.Path(), '/')+1] + PoolID
	d.pool = ctx.System().Pool(base)
	d.mended = map[Key]mending{}
	d.looked = ctx.Clock().Now()
	d.swept = d.looked
	d.ring = func() {
		if d.rung.CompareAndSwap(false, true) {
			ctx.After(0, round{})
		}
	}
	d.board.listen(d.ring, d.looked)
	d.feed = d.subscribe(d.ring)
	if d.hooks.Fault != nil {
		d.unwatch = ctx.System().Watch(func(c supervision.Change) { d.tellFault(base+"/", c) })
	}
}

func (d *dispatcher) stop() {
	if d.feed != nil {
		d.feed.Close()
	}
	if d.unwatch != nil {
		d.unwatch()
	}
}

// tellFault passes on a change of a manifest's actor that a fault brought about, or the end of one.
func (d *dispatcher) tellFault(base string, c supervision.Change) {
	if id, ok := strings.CutPrefix(c.Path, base); ok && (c.Fault != nil || c.Repair > 0) {
		d.hooks.Fault(ParseKey(id), c)
	}
}

// round does all there is to do, and arms the next one.
func (d *dispatcher) round(ctx supervision.Context) error {
	now := ctx.Clock().Now()
	wakes, err := d.feed.Take()
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("cannot dispatch for %s: %w", d.name, err)
	}
	if d.isReady() { // before, all that wakes are good for comes with the list
		d.todo = append(d.todo, wakes...)
	}
	d.missed = false
	d.settle()
	d.seek(ctx, now, err != nil)
	d.force(append(d.board.nudged(), d.board.ripe(now, chunk)...))
	d.giveOut(now)
	d.grant()
	d.payOwed(now)
	d.arm(ctx, now)
	return nil
}

// settle ends the actors that asked for it.
func (d *dispatcher) settle() {
	end, behind := d.board.settle()
	for _, key := range end {
		d.pool.Stop(key.String())
	}
	for _, key := range behind {
		d.pool.Send(key.String(), count{d.board.send(key)})
	}
}

// force wakes manifests whatever they have seen.
func (d *dispatcher) force(keys []Key) {
	for _, key := range keys {
		d.wake(Wake{Key: key})
	}
}

// giveOut gives a part of the wakes out.
func (d *dispatcher) giveOut(now time.Time) {
	n := min(chunk, len(d.todo))
	for _, w := range d.todo[:n] {
		if w.Mends != nil && d.board.stuck(w.Key) > 0 && w.Mends() {
			d.board.pardon(w.Key)
		}
		if !d.wake(w) && w.Mends != nil && w.Mends() {
			d.mend(w.Key, now)
		}
	}
	if d.todo = d.todo[n:]; len(d.todo) == 0 {
		d.todo = nil
	}
}

// wake tells the actor of a manifest, making it if need be. False when nobody took it.
func (d *dispatcher) wake(w Wake) bool {
	switch d.board.wake(w.Key, w.Revision, d.source.Has) {
	case start, tell:
		return d.send(w.Key, w.Revision)
	}
	return true
}

// send sends a wake to the actor of a manifest, which is made if it is not there.
func (d *dispatcher) send(key Key, revision uint64) bool {
	id := key.String()
	d.pool.Ensure(id, d.maker(key))
	if !d.pool.Send(id, wake{revision: revision, number: d.board.send(key)}) {
		d.missed = true // in back-off, where its next start brings a pass, or the pool is down, which the next look finds
		return false
	}
	return true
}

// maker makes the generations of a manifest's actor.
func (d *dispatcher) maker(key Key) func() supervision.Handler {
	born := false
	return func() supervision.Handler {
		m := &manifest{Engine: d.Engine, key: key, place: placeOf(key), again: born}
		born = true
		return m
	}
}

// grant tells those whose turn it is of all who wait because of the limit.
func (d *dispatcher) grant() {
	told, made := d.board.grants()
	for _, key := range told {
		if !d.pool.Send(key.String(), count{d.board.send(key)}) {
			d.board.yield(key) // it is down, and asks again when it is up
		}
	}
	for _, key := range made {
		d.send(key, 0)
	}
}

// arm makes the next round come when something is due.
func (d *dispatcher) arm(ctx supervision.Context, now time.Time) {
	if len(d.todo) > 0 {
		d.ring()
	}
	at := now.Add(max(d.pause(now), 0))
	if d.armed.After(now) && !d.armed.After(at) {
		return
	}
	if d.disarm != nil {
		d.disarm()
	}
	d.armed, d.disarm = at, ctx.After(at.Sub(now), round{})
}

// pause is how long nothing has to be done unless something happens.
func (d *dispatcher) pause(now time.Time) time.Duration {
	wait := min(d.looked.Add(lookEvery).Sub(now), d.board.nextDue(now))
	if d.timings.Fallback > 0 {
		wait = min(wait, d.timings.Fallback)
	}
	if d.missed || d.owes() || !d.listed {
		wait = min(wait, retryEvery)
	}
	return wait
}

// await is the job that waits for the source.
func (d *dispatcher) await(ctx supervision.Context) {
	d.listing = true
	ctx.Go(supervision.Job{Name: syncJob, Deadline: syncDeadline, Run: func(ctx context.Context, _ func()) (any, error) {
		revision, err := d.source.Sync(ctx)
		return revision, err
	}})
}
