package operatortest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// act carries out what the nodes have decided, in an order that the seed decides.
func (f *fleet[S]) act() {
	for _, n := range f.nodes {
		for _, fence := range n.begun {
			at := f.truth[fence.Manifest]
			at.started = max(at.started, fence.Epoch)
		}
		n.begun = n.begun[:0]
	}
	for _, i := range f.rng.Perm(len(f.nodes)) {
		n := f.nodes[i]
		if !n.up || n.frozen {
			continue
		}
		f.endPasses(n)
		f.post(n)
	}
}

// post does what a node asks others for. Of a node that is cut off nothing arrives.
func (f *fleet[S]) post(n *node) {
	out := n.outbox
	n.outbox = n.outbox[:0]
	if n.cut {
		return
	}
	ctx := context.Background()
	var writes []lease.Write
	for _, a := range out {
		switch a := a.(type) {
		case lease.Renew:
			err := f.authority.Renew(f.clock.now, n.id, a.Session.Leaving)
			n.inbox = append(n.inbox, lease.Renewed{Seq: a.Seq, Ended: errors.Is(err, lease.ErrSessionEnded)})
		case lease.Append:
			writes = append(writes, a.Write.At(f.clock.Now()))
		case lease.End:
			f.authority.End(f.clock.now, n.id)
		}
	}
	if len(writes) == 0 {
		return
	}
	answers, err := f.store.Append(ctx, writes)
	if err != nil {
		f.t.Fatalf("cannot write leases: %v", err)
	}
	for i, a := range answers {
		n.inbox = append(n.inbox, f.answer(writes[i], a)...)
	}
}

// answer is what a node is told of a write; with a refusal comes what stood in its way.
func (f *fleet[S]) answer(w lease.Write, a storage.Appended) []lease.Event {
	if a.Err != nil {
		return []lease.Event{
			lease.Answered{Write: w, Outcome: lease.Refused},
			lease.Observed{Manifest: w.Manifest, Stored: f.recordOf(w.Manifest)},
		}
	}
	if w.Record.Free() {
		f.report.Released++
	} else {
		f.report.Taken++
	}
	f.note(w.Manifest, w.Record.Epoch)
	return []lease.Event{lease.Answered{Write: w, Outcome: lease.Applied, Revision: a.Revision}}
}

func (f *fleet[S]) recordOf(manifest string) lease.Stored {
	stored, err := f.store.Lease(context.Background(), manifest)
	if err != nil {
		f.t.Fatalf("cannot read a lease: %v", err)
	}
	return stored
}

// endPasses runs the passes of a node that come to their end: whatever has happened since they began, they know nothing of it.
func (f *fleet[S]) endPasses(n *node) {
	ready := n.ready
	n.ready = n.ready[:0]
	for _, at := range ready {
		at.running = false
		f.pass(n, at)
		n.take(f.clock.now, lease.Done{Fence: at.fence})
		if now, held := n.lease.Holds(at.key); !held {
			delete(n.held, at.key)
		} else if now != at.fence {
			at.fence, at.due = now, f.clock.now
		}
	}
}

func (f *fleet[S]) pass(n *node, at *tended) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if at.stop {
		cancel()
		at.due = f.clock.now
	}
	rec, _, err := f.read(n, at.key)
	if err != nil {
		at.due = f.clock.now + time.Second
		return
	}
	if rec == nil {
		at.due = never
		return
	}
	f.report.Passes++
	f.settle(at, f.run(ctx, n, at, *rec))
}

// settle says when the next pass of a manifest begins.
func (f *fleet[S]) settle(at *tended, out operator.Outcome) {
	switch {
	case out.Verdict == operator.Gone:
	case out.Verdict == operator.Succeeded && out.After > 0, out.Verdict == operator.Failed:
		at.due = min(at.due, f.clock.now+out.After)
	case out.Verdict == operator.Interrupted, out.Verdict == operator.Unanswered:
		at.due = min(at.due, f.clock.now+time.Second)
	}
}

// run runs the operator's own code and stores what it comes to. A panic is what becomes of a panic in an actor: the next try comes later.
func (f *fleet[S]) run(ctx context.Context, n *node, at *tended, rec operator.Record) (out operator.Outcome) {
	defer func() {
		if v := recover(); v != nil {
			f.report.Panics++
			out = operator.Outcome{Verdict: operator.Failed, After: time.Second}
		}
	}()
	return f.runner.Pass(ctx, rec, operator.Env{
		Now: f.clock.Now, Jitter: 0.5, Fence: at.fence,
		Check: func(context.Context) error {
			if at.stop {
				return operator.ErrFenced
			}
			return nil
		},
		Commit: func(ctx context.Context, c operator.Change) (operator.Record, error) { return f.commit(n, at, c) },
	})
}

// stumble lets one pass in a thousand panic while it is stormy.
func (f *fleet[S]) stumble(_ context.Context, state *operator.ManifestState[S], do func() error) error {
	if f.clock.now < calmFrom && f.rng.IntN(panicOdds) == 0 {
		panic("injected into a pass of " + state.Manifest.Name)
	}
	return do()
}

// read reads a manifest, nil when it is gone.
func (f *fleet[S]) read(n *node, key string) (*operator.Record, storage.Revision, error) {
	if n.cut {
		return nil, 0, errUnreachable
	}
	id, _ := storage.ParseKey(key)
	o, err := f.store.GetObject(context.Background(), id)
	if err != nil || o.Revision == 0 {
		return nil, 0, err
	}
	rec, err := operator.DecodeRecord(o.Value)
	return &rec, o.Revision, err
}

// commit writes under the fence, and holds the store to what a fence promises.
func (f *fleet[S]) commit(n *node, at *tended, c operator.Change) (operator.Record, error) {
	rec, revision, err := f.read(n, at.key)
	if err != nil {
		return operator.Record{}, err
	}
	if rec == nil {
		return operator.Record{}, operator.ErrNotFound
	}
	after, gone := c.On(*rec)
	value, err := after.Encode()
	if err != nil {
		return operator.Record{}, err
	}
	if gone {
		value = nil
	}
	id, _ := storage.ParseKey(at.key)
	_, err = f.store.Write(context.Background(), storage.Write{Fence: &at.fence, Expected: revision, ID: id, Value: value, Delete: gone})
	if errors.Is(err, storage.ErrFenced) {
		f.report.Fenced++
		n.take(f.clock.now, lease.Fenced{Fence: at.fence})
		return operator.Record{}, operator.ErrFenced
	}
	if err != nil {
		return operator.Record{}, err
	}
	f.accepted(n, at, revision)
	return after, nil
}

// accepted holds that nobody has begun under a later lease when an effect is accepted.
func (f *fleet[S]) accepted(n *node, at *tended, revision storage.Revision) {
	truth := f.truth[at.key]
	if at.fence.Epoch < truth.accepted || at.fence.Epoch < truth.started {
		f.t.Errorf("%s: an effect of %s was accepted in %s under epoch %d, after one of epoch %d, and %d had begun",
			f.clock.now, n.id, at.key, at.fence.Epoch, truth.accepted, truth.started)
	}
	truth.accepted = at.fence.Epoch
	f.note(at.key, at.fence.Epoch, revision)
}

// note makes what happened part of the hash of the story.
func (f *fleet[S]) note(what string, numbers ...uint64) {
	f.report.Hash = lease.Score(fmt.Sprint(f.report.Hash), fmt.Sprint(f.clock.now, what, numbers))
}
