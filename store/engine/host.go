package engine

import "context"

// Host is an Engine that outlives what it stands on: one life begins, ends with a failure, and is followed by the next. Between two lives
// every call but those that look at memory fails with ErrClosed.
type Host interface {
	Engine
	// Begin returns the life that goes on, or the next one. It waits as long as ctx for what a life needs.
	Begin(ctx context.Context) (Life, error)
	// Empty ends the life, if there is one; it waits as long as ctx.
	Empty(ctx context.Context) error
}

// Life is what a store follows of its engine until it fails.
type Life interface {
	// Follow hands every change after the revision to f, in order, until ctx or the life ends or f fails. Changes of keys without the
	// prefix may be left out; the revisions of batches, some of them empty, pass them all the same. ErrCompacted says that there is a gap.
	Follow(ctx context.Context, prefix string, after int64, f func(Batch) error) error
	// Revision is the newest revision that is known.
	Revision() int64
	// Err is nil until the life has failed.
	Err() error
	// Fail ends the life, for a reason that its user has found.
	Fail(err error)
}

var (
	_ Host = (*Seat)(nil)
	_ Life = (*Member)(nil)
)

// Begin implements Host.
func (s *Seat) Begin(ctx context.Context) (Life, error) {
	m, err := s.Fill(ctx)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Follow implements Life. It leaves nothing out: every revision has a change.
func (m *Member) Follow(ctx context.Context, _ string, after int64, f func(Batch) error) error {
	return m.Watch(ctx, First, Last, after, f)
}
