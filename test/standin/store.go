package standin

import (
	"context"
	"errors"
	"sync"
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
	mu   sync.Mutex
	to   map[string]Condition
	lost chan struct{}
	done int
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

// Done is how many effects the store has taken.
func (s *Store) Done() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// open returns what tells the keeper that its store has failed.
func (s *Store) open() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// do is one effect of the child at path.
func (s *Store) do(ctx context.Context, path string, write bool) error {
	s.mu.Lock()
	c := s.to[path]
	if c == Fine || c == Full && !write {
		s.done++
	}
	s.mu.Unlock()
	switch {
	case c == Stalled:
		<-ctx.Done()
		return ctx.Err()
	case c == Gone:
		return ErrGone
	case c == Full && write:
		return ErrFull
	}
	return nil
}
