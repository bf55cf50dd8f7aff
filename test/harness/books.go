package harness

import (
	"fmt"
	"sync"
)

// Account is what became of the messages of a run: Sent is the sum of the others.
type Account struct {
	// Sent counts the messages that were sent to children by Send of a System, Pool or Context.
	Sent int
	// Handled counts those whose handling ended well, Faulted those whose handling was a fault,
	// DeadLettered those that nobody took, Waiting those in a mailbox or in somebody's hands.
	Handled, Faulted, DeadLettered, Waiting int
}

// deadLetter is one message that nobody took.
type deadLetter struct{ to, what, why string }

// books count messages.
type books struct {
	mu sync.Mutex
	a  Account
	// letters are kept until closed.
	letters []deadLetter
	closed  bool
}

func (b *books) sent() {
	b.mu.Lock()
	b.a.Sent++
	b.mu.Unlock()
}

func (b *books) handled(faulted bool) {
	b.mu.Lock()
	if faulted {
		b.a.Faulted++
	} else {
		b.a.Handled++
	}
	b.mu.Unlock()
}

func (b *books) dead(to string, msg any, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.a.DeadLettered++
	if !b.closed {
		b.letters = append(b.letters, deadLetter{to, fmt.Sprintf("%T", msg), why})
	}
}

func (b *books) account() Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.a
	a.Waiting = a.Sent - a.Handled - a.Faulted - a.DeadLettered
	return a
}

// close makes later dead letters count for nothing: the kit itself is taking the tree down.
func (b *books) close() []deadLetter {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.letters
}
