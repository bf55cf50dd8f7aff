package kube

import "sync"

// board is where actors ask to be ended and where the dispatcher keeps which wakes it sent. It outlives generations of both.
//
// An actor asks with the number of the last wake it has. Only when that is the last one sent is it ended; a wake that crossed the
// request keeps it. The dispatcher's one goroutine sends and ends, so nothing can be sent between the look and the end.
type board struct {
	mu       sync.Mutex
	requests map[Key]uint64
	// sent is the number of the last wake of each actor that exists.
	sent map[Key]uint64
	// passes counts the passes of each manifest that have not returned, those of abandoned actors included.
	passes map[Key]int
	// asked holds a token when there are requests.
	asked chan struct{}
}

func newBoard() *board {
	return &board{requests: map[Key]uint64{}, sent: map[Key]uint64{}, passes: map[Key]int{}, asked: make(chan struct{}, 1)}
}

// retire asks for the end of an actor whose last wake had this number.
func (b *board) retire(key Key, number uint64) {
	b.mu.Lock()
	b.requests[key] = number
	b.mu.Unlock()
	select {
	case b.asked <- struct{}{}:
	default:
	}
}

// send numbers the next wake of an actor.
func (b *board) send(key Key) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[key]++
	return b.sent[key]
}

// known tells whether an actor of the key has been woken and not ended.
func (b *board) known(key Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.sent[key]
	return ok
}

// settle takes all requests and sorts them: the actors to end, which are forgotten, and those a wake was sent to that they do not
// know of, which need another.
func (b *board) settle() (end, again []Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, number := range b.requests {
		sent, ok := b.sent[key]
		switch {
		case !ok:
		case sent == number:
			delete(b.sent, key)
			end = append(end, key)
		default:
			again = append(again, key)
		}
	}
	clear(b.requests)
	return end, again
}

// keys lists the actors that were woken and not ended.
func (b *board) keys() []Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]Key, 0, len(b.sent))
	for key := range b.sent {
		keys = append(keys, key)
	}
	return keys
}

// len is how many actors were woken and not ended.
func (b *board) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sent)
}

// enter notes the begin of a pass; leave its return.
func (b *board) enter(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passes[key]++
}

func (b *board) leave(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passes[key]--; b.passes[key] == 0 {
		delete(b.passes, key)
	}
}

// hanging is how many passes of a manifest have not returned.
func (b *board) hanging(key Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.passes[key]
}
