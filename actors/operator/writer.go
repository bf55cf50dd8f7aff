package operator

import (
	"context"
	"errors"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

// writer stores what one pass comes to, under the pass's fence.
type writer struct {
	host *host
	// rec is the record as it is known to be, revision that of its last write.
	rec      Record
	revision storage.Revision
	fence    lease.Fence
}

func (w *writer) env() Env {
	return Env{
		Now: w.host.opts.clock.Now, Sleep: w.host.opts.clock.Sleep, Jitter: spread(w.rec.Key()), Fence: w.fence, Check: w.check,
		Reader: storeReader{w.host.store}, Once: &w.host.once, Commit: w.commit,
	}
}

// check asks the store whether the fence still holds, and the session whether it may be relied upon.
func (w *writer) check(ctx context.Context) error {
	if err := w.host.session.May(w.fence); err != nil {
		return err
	}
	held, err := w.host.store.Lease(ctx, w.fence.Manifest)
	if err != nil {
		return err
	}
	return w.fence.Check(held.Record)
}

// commit writes a change on top of what is stored. Users write the same object; whoever comes second reads again.
func (w *writer) commit(ctx context.Context, c Change) (Record, error) {
	c = w.host.loops.watch(w.rec.Key(), c)
	err := w.write(ctx, c)
	for range maxTries {
		if !errors.Is(err, storage.ErrConflict) {
			break
		}
		if err = w.reread(ctx); err == nil {
			err = w.write(ctx, c)
		}
	}
	if errors.Is(err, ErrFenced) {
		w.host.session.Fenced(w.fence)
	}
	return w.rec, err
}

// reread reads the record again. One of another UID is another manifest.
func (w *writer) reread(ctx context.Context) error {
	rec, revision, err := readRecord(ctx, w.host.store, w.host.id(w.rec.Key()))
	if err != nil {
		return err
	}
	if rec.UID != w.rec.UID {
		return ErrNotFound
	}
	w.rec, w.revision = rec, revision
	return nil
}

// write tries once.
func (w *writer) write(ctx context.Context, c Change) error {
	after, gone := c.On(w.rec)
	value, err := after.Encode()
	if err != nil {
		return err
	}
	write := storage.Write{Fence: &w.fence, Expected: w.revision, ID: w.host.id(after.Key()), Value: value, Delete: gone}
	if gone {
		write.Value = nil
	}
	revision, err := w.host.store.Write(ctx, write)
	if err != nil {
		return err
	}
	w.rec, w.revision = after, revision
	w.host.tally.writes.Add(1)
	w.host.index.wrote(after, revision, gone)
	return nil
}

// storeReader reads other kinds straight from the store.
type storeReader struct{ store storage.Store }

// Get implements Reader.
func (r storeReader) Get(ctx context.Context, kind string, key Key) (Record, error) {
	rec, _, err := readRecord(ctx, r.store, storage.ID{Kind: kind, Namespace: key.Namespace, Name: key.Name})
	return rec, err
}

// List implements Reader.
func (r storeReader) List(ctx context.Context, kind string) (all []Record, err error) {
	err = visitRecords(ctx, r.store, kind, func(rec Record) error {
		all = append(all, rec)
		return nil
	})
	return all, err
}
