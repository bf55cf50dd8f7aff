package harness

import (
	"slices"
	"sync"
)

// Order is the order in which held things are let go.
type Order uint8

// The orders of a release.
const (
	// InOrder lets them go as they came.
	InOrder Order = iota
	// Reversed lets the last go first.
	Reversed
	// Shuffled lets them go in an order that the seed decides.
	Shuffled
	// Dropped lets none of them go: they were missed.
	Dropped
)

// Gate holds events up on their way to whoever consumes them. The zero order of an open gate
// is that in which Push is called.
type Gate[T any] struct {
	k       *Kit
	deliver func(T)
	mu      sync.Mutex
	held    []T
	closed  bool
}

// NewGate makes an open gate in front of deliver, such as the handler of a watch.
func NewGate[T any](k *Kit, deliver func(T)) *Gate[T] { return &Gate[T]{k: k, deliver: deliver} }

// Push lets an event through, or keeps it while the gate is held.
func (g *Gate[T]) Push(event T) {
	g.mu.Lock()
	if g.closed {
		g.held = append(g.held, event)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	g.deliver(event)
}

// Hold keeps what comes from now on.
func (g *Gate[T]) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Held is how many events wait.
func (g *Gate[T]) Held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held)
}

// Release lets go what was held, in that order, and opens the gate.
func (g *Gate[T]) Release(order Order) {
	g.mu.Lock()
	held := g.held
	g.held, g.closed = nil, false
	g.mu.Unlock()
	for _, e := range arrange(g.k, held, order) {
		g.deliver(e)
	}
}

func arrange[T any](k *Kit, all []T, order Order) []T {
	switch order {
	case Reversed:
		slices.Reverse(all)
	case Shuffled:
		k.Rand().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	case Dropped:
		return nil
	}
	return all
}

// Held are the messages to one child that are held up.
type Held struct {
	*Gate[any]
	match func(msg any) bool
}

// Hold keeps the messages to the child at path which match, lifecycle and job results
// included, until Release sends them again.
func (k *Kit) Hold(path string, match func(msg any) bool) *Held {
	h := &Held{NewGate(k, func(msg any) { k.Send(path, msg) }), match}
	h.Gate.Hold()
	k.holds.add(path, h)
	return h
}

// holds are the gates in front of children, by path.
type holds struct {
	mu     sync.Mutex
	byPath map[string][]*Held
}

func (s *holds) add(path string, h *Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPath == nil {
		s.byPath = map[string][]*Held{}
	}
	s.byPath[path] = append(s.byPath[path], h)
}

// take keeps a message if it is held up.
func (s *holds) take(path string, msg any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byPath) == 0 {
		return false
	}
	for _, h := range s.byPath[path] {
		if h.keep(msg) {
			return true
		}
	}
	return false
}

func (h *Held) keep(msg any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed || !h.match(msg) {
		return false
	}
	h.held = append(h.held, msg)
	return true
}
