package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// ask queues a write of a lease, unless the same is asked for already.
func (l *life) ask(a lease.Append) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if _, there := l.asked[a.Write]; !there {
		l.asked[a.Write] = a.Why
		l.waiting = append(l.waiting, a.Write)
	}
}

// batch takes the next writes to send; nil when there are none, or too many are under way. Those that have been overtaken meanwhile are
// forgotten: they would be refused.
func (l *life) batch() (some []lease.Write) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.batches >= batchesMost {
		return nil
	}
	for len(l.waiting) > 0 && len(some) < batchMost {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		if !l.node.Awaits(w) {
			delete(l.asked, w)
			continue
		}
		some = append(some, w)
	}
	if some != nil {
		l.batches++
	}
	return some
}

// send writes a batch, and returns the events that answer it.
func (l *life) send(ctx context.Context, writes []lease.Write) []lease.Event {
	stamped := make([]lease.Write, len(writes))
	for i, w := range writes {
		stamped[i] = w.At(l.clock.Now())
	}
	done, err := l.of.store.Append(ctx, stamped)
	events := make([]lease.Event, 0, len(writes))
	for i := range writes {
		if err != nil {
			events = append(events, lease.Answered{Write: stamped[i]})
			continue
		}
		events = append(events, l.answer(ctx, stamped[i], done[i])...)
	}
	return events
}

// answer are the events of one write; after a refusal, what stood in its way.
func (l *life) answer(ctx context.Context, w lease.Write, done storage.Appended) []lease.Event {
	if done.Err == nil {
		return []lease.Event{lease.Answered{Write: w, Outcome: lease.Applied, Revision: done.Revision}}
	}
	refused := lease.Answered{Write: w, Outcome: lease.Refused}
	stored, err := l.of.store.Lease(ctx, w.Manifest)
	if err != nil {
		refused.Outcome = lease.Unknown // so that it is tried again, and read again
	}
	return []lease.Event{refused, lease.Observed{Manifest: w.Manifest, Stored: stored}}
}

// sent notes that a batch was answered.
func (l *life) sent(writes []lease.Write, events []lease.Event) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.batches--
	why := map[string]lease.Reason{}
	for _, w := range writes {
		why[w.Manifest] = l.asked[w]
		delete(l.asked, w)
	}
	for _, e := range events {
		a, ok := e.(lease.Answered)
		if !ok || a.Outcome != lease.Applied || a.Write.Record.Holder != l.id {
			continue
		}
		if why[a.Write.Manifest] > lease.BecauseFree && why[a.Write.Manifest] <= lease.BecauseExpired {
			l.of.stats.Takeovers++
		}
	}
}

// renew asks for a renewal; the answer is nil when there is none.
func (l *life) renew(ctx context.Context, r lease.Renew) (lease.Event, error) {
	err := l.of.store.Renew(ctx, l.id, r.Session.Leaving)
	switch {
	case errors.Is(err, lease.ErrSessionEnded):
		return lease.Renewed{Seq: r.Seq, Ended: true}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot renew session %s: %w", l.id, err)
	}
	return lease.Renewed{Seq: r.Seq}, nil
}
