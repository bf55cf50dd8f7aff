package scheduler

import "sync"

// inbox gathers what jobs have for the actor, so that a burst of changes is one message, not thousands.
type inbox struct {
	wake func()

	mu     sync.Mutex
	items  []any
	called bool
}

// put adds an item and wakes the actor unless a wake-up is already under way.
func (b *inbox) put(item any) {
	b.mu.Lock()
	b.items = append(b.items, item)
	call := !b.called
	b.called = true
	b.mu.Unlock()
	if call {
		b.wake()
	}
}

// take empties the inbox; a later put wakes the actor again.
func (b *inbox) take() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.called = nil, false
	return items
}
