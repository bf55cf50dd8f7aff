package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nodeactor/nodeactor/store/engine"
)

// Maintain forgets history: all but the newest revisions from before the last call. It writes nothing when nothing was written since,
// so a supervised child may call it every few minutes.
func (s *Store) Maintain(ctx context.Context) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	target, now := min(s.marked, s.index.Revision()-keepBehind), s.index.Revision()
	if err := s.compactTo(ctx, target); err != nil {
		return err
	}
	s.marked = now
	return nil
}

// Passes tells whether an error of the store is of the moment: its disk is slow or full, or its engine is being opened anew.
func Passes(err error) bool {
	for _, passing := range []error{ErrStalled, ErrNoSpace, ErrClosed, engine.ErrClosed} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// CompactTo forgets history before revision at once.
func (s *Store) CompactTo(ctx context.Context, revision int64) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	return s.compactTo(ctx, revision)
}

func (s *Store) compactTo(ctx context.Context, revision int64) error {
	if revision <= max(1, s.compacted.Load()) {
		return nil
	}
	if err := s.host.Compact(ctx, revision); err != nil {
		return fmt.Errorf("cannot compact store to %d: %w", revision, err)
	}
	s.compacted.Store(revision)
	s.index.Forget(revision)
	return nil
}

// CompactRevision is the revision to which this process last compacted; 0 = it has not.
func (s *Store) CompactRevision() int64 { return s.compacted.Load() }

// Snapshot writes a consistent copy of the engine's database to w: a file that etcd's own tools can restore.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error { return s.host.Snapshot(ctx, w) }
