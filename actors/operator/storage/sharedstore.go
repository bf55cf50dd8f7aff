package storage

import (
	"context"
	"errors"
	"slices"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// read does what may be done again with the next host when one goes away meanwhile.
func read[T any](ctx context.Context, s *SharedStore, do func(role) (T, error)) (T, error) {
	for {
		r, err := s.wait(ctx)
		if err != nil {
			var none T
			return none, err
		}
		v, err := do(r)
		if err == nil || !s.lost(err) {
			return v, err
		}
		s.left(ctx, r)
	}
}

// lost tells whether an error is that of a role which is over, while the store is open.
func (s *SharedStore) lost(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && (errors.Is(err, ErrAway) || errors.Is(err, ErrClosed))
}

// left returns when a role is not the present one any more.
func (s *SharedStore) left(ctx context.Context, r role) {
	for {
		s.mu.Lock()
		now, turned := s.now, s.turned
		s.mu.Unlock()
		if now != r {
			return
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return
		}
	}
}

// GetObject implements Store.
func (s *SharedStore) GetObject(ctx context.Context, id ID) (Object, error) {
	return read(ctx, s, func(r role) (Object, error) { return r.GetObject(ctx, id) })
}

// Lease implements Store.
func (s *SharedStore) Lease(ctx context.Context, manifest string) (lease.Stored, error) {
	return read(ctx, s, func(r role) (lease.Stored, error) { return r.Lease(ctx, manifest) })
}

// paged is a page that was read.
type paged struct {
	entries  []entry
	revision Revision
	more     bool
}

func (s *SharedStore) page(ctx context.Context, bucket, prefix, after string) ([]entry, Revision, bool, error) {
	p, err := read(ctx, s, func(r role) (p paged, err error) {
		p.entries, p.revision, p.more, err = r.page(ctx, bucket, prefix, after)
		return p, err
	})
	return p.entries, p.revision, p.more, err
}

// ListObjects implements Store.
func (s *SharedStore) ListObjects(ctx context.Context, kind string, visit func(Object) bool) (Revision, error) {
	return pager(s.page).objects(ctx, kind, visit)
}

// Leases implements Store.
func (s *SharedStore) Leases(ctx context.Context, visit func(string, lease.Stored) bool) (Revision, error) {
	return pager(s.page).leases(ctx, visit)
}

// Write implements Store. ErrAway is returned when the host has gone while the write was under way.
func (s *SharedStore) Write(ctx context.Context, w Write) (Revision, error) {
	r, err := s.wait(ctx)
	if err != nil {
		return 0, err
	}
	at, err := r.Write(ctx, w)
	return at, s.unsure(err)
}

// Append implements Store; ErrAway is as for Write.
func (s *SharedStore) Append(ctx context.Context, writes []lease.Write) ([]Appended, error) {
	r, err := s.wait(ctx)
	if err != nil {
		return nil, err
	}
	done, err := r.Append(ctx, writes)
	return done, s.unsure(err)
}

// unsure says ErrAway of a role that was closed beneath a write, in place of ErrClosed: the store is not closed.
func (s *SharedStore) unsure(err error) error {
	if errors.Is(err, ErrClosed) && s.lost(err) {
		return ErrAway
	}
	return err
}

// Renew implements Store.
func (s *SharedStore) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	s.mu.Lock()
	if !slices.Contains(s.own, id) {
		s.own = append(s.own, id)
	}
	s.mu.Unlock()
	_, err := read(ctx, s, func(r role) (struct{}, error) { return struct{}{}, r.Renew(ctx, id, leaving) })
	return err
}

// End implements Store.
func (s *SharedStore) End(ctx context.Context, id lease.SessionID) error {
	s.mu.Lock()
	s.own = slices.DeleteFunc(s.own, func(o lease.SessionID) bool { return o == id })
	s.mu.Unlock()
	_, err := read(ctx, s, func(r role) (struct{}, error) { return struct{}{}, r.End(ctx, id) })
	return err
}
