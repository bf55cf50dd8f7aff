package standin

import (
	"context"
	"errors"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// Condition is how the store answers.
type Condition uint8

// The conditions of the store.
const (
	Fine Condition = iota
	// Stalled answers nothing until the caller gives up.
	Stalled
	// Gone refuses everything.
	Gone
	// Full refuses writes.
	Full
)

// Errors of the fake store.
var (
	// ErrGone is returned when there is no store to talk to.
	ErrGone = errors.New("the store is gone")
	// ErrFull is returned when a write finds no space.
	ErrFull = errors.New("no space left on device")
)

// Store is a fake that can be as bad to each child as a test wants.
type Store struct {
	// Taken, which may be nil, is told whose effect was taken.
	Taken func(path string, generation uint64)

	mu   sync.Mutex
	to   map[string]Condition
	lost chan struct{}
}

func newStore() *Store { return &Store{to: map[string]Condition{}, lost: make(chan struct{})} }

// Set changes how the store answers the child at path.
func (s *Store) Set(path string, c Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to[path] = c
}

// Fail makes the store end under whoever keeps it open; it can be opened again.
func (s *Store) Fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.lost)
	s.lost = make(chan struct{})
}

// open returns what tells the keeper that its store has failed.
func (s *Store) open() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// do is one effect of a generation.
func (s *Store) do(ctx context.Context, c supervision.Context, write bool) error {
	if err := supervision.CheckFence(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	how := s.to[c.Path()]
	s.mu.Unlock()
	switch {
	case how == Stalled:
		return c.Clock().Sleep(ctx, ever)
	case how == Gone:
		return ErrGone
	case how == Full && write:
		return ErrFull
	}
	if s.Taken != nil {
		s.Taken(c.Path(), c.Generation())
	}
	return nil
}
