package store

import (
	"context"
	"fmt"
	"io"
)

// Maintain forgets history: all but the newest revisions from before the last call. It writes nothing when nothing was written since,
// so a supervised child may call it every few minutes.
func (s *Store) Maintain(ctx context.Context) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	target := min(s.marked, s.index.Revision()-keepBehind)
	s.marked = s.index.Revision()
	return s.compactTo(ctx, target)
}

// CompactTo forgets history before revision at once.
func (s *Store) CompactTo(ctx context.Context, revision int64) error {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	return s.compactTo(ctx, revision)
}

func (s *Store) compactTo(ctx context.Context, revision int64) error {
	if revision <= max(1, s.compacted) {
		return nil
	}
	if err := s.engine.Compact(ctx, revision); err != nil {
		return fmt.Errorf("cannot compact store to %d: %w", revision, err)
	}
	s.compacted = revision
	s.index.Forget(revision)
	return nil
}

// CompactRevision is the revision to which this process last compacted; 0 = it has not.
func (s *Store) CompactRevision() int64 {
	s.compactMu.Lock()
	defer s.compactMu.Unlock()
	return s.compacted
}

// Snapshot writes a consistent copy of the engine's database to w: a file that etcd's own tools can restore.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error { return s.engine.Snapshot(ctx, w) }
