package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// local is a Store whose backend is in this process.
type local struct {
	back     backend
	writer   writer
	feeds    *feeds
	sessions *sessions
}

// writer does a write, alone or with others in one transaction, and returns when it is durable. committed is called once for each
// transaction, in their order, before those return whose writes are in it.
type writer interface {
	do(ctx context.Context, write func(*txn) error) error
}

func newDirectWriter(b backend, committed func([]string, Revision)) writer {
	return directWriter{b, committed}
}

// directWriter does each write in a transaction of its own, in the goroutine of the caller.
type directWriter struct {
	back      backend
	committed func(changed []string, at Revision)
}

func (d directWriter) do(ctx context.Context, write func(*txn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	changed, at, err := run(d.back, []func(*txn) error{write})
	if err == nil {
		d.committed(changed, at)
	}
	return err
}

// newLocal makes a store on a backend that is at a revision and whose leases the sessions hold; newWriter chooses how it writes.
func newLocal(back backend, o options, at Revision, holders []lease.SessionID, newWriter func(b backend, committed func([]string, Revision)) writer) *local {
	f := &feeds{back: back, at: at}
	return &local{back: back, writer: newWriter(back, f.changed), feeds: f, sessions: newSessions(o.clock, holders)}
}

// GetObject implements Store.
func (l *local) GetObject(ctx context.Context, id ID) (Object, error) {
	o := Object{ID: id}
	err := l.back.view(func(t table) error {
		revision, value := decodeObject(t.get(objects, id.Key()))
		o.Revision, o.Value = revision, slices.Clone(value)
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return o, err
}

// Lease implements Store.
func (l *local) Lease(ctx context.Context, manifest string) (s lease.Stored, err error) {
	err = l.back.view(func(t table) (err error) {
		s, err = readLease(t, manifest)
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	return s, err
}

// Write implements Store.
func (l *local) Write(ctx context.Context, w Write) (Revision, error) {
	if err := w.check(); err != nil {
		return 0, err
	}
	w.Value = slices.Clone(w.Value)
	var done written
	err := l.writer.do(ctx, func(t *txn) (err error) {
		done, err = t.write(w)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot write %s: %w", w.ID.Key(), err)
	}
	return done.revision, done.err
}

// Append implements Store.
func (l *local) Append(ctx context.Context, writes []lease.Write) ([]Appended, error) {
	done := make([]Appended, len(writes))
	err := l.writer.do(ctx, func(t *txn) (err error) {
		for i, w := range writes {
			if done[i], err = t.append(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write %d leases: %w", len(writes), err)
	}
	return done, nil
}

// Watch implements Store.
func (l *local) Watch(from Revision, f Filter, notify func()) (Feed, error) {
	feed, err := l.feeds.watch(from, f, notify)
	if err != nil {
		return nil, fmt.Errorf("cannot watch from revision %d: %w", from, err)
	}
	return feed, nil
}

// Renew implements Store.
func (l *local) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.sessions.renew(id, leaving)
}

// End implements Store.
func (l *local) End(ctx context.Context, id lease.SessionID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.sessions.end(id)
}

// WatchSessions implements Store.
func (l *local) WatchSessions(notify func()) SessionFeed { return l.sessions.watch(notify) }

// Announce says that the processes of sessions have ended, as membership knows, or that they have not: others need not wait until the
// sessions run out.
func (l *local) Announce(dead bool, ids ...lease.SessionID) { l.sessions.announce(dead, ids...) }

// Close implements Store.
func (l *local) Close() error {
	l.sessions.close()
	l.feeds.close()
	return l.back.close()
}
