package supervision

import "time"

// Sizes of a queue.
const (
	// firstRoom is the room of a queue that gets its first message.
	firstRoom = 4
	// idleRoom is the most room that an empty queue keeps.
	idleRoom = 64
)

// letter is a message and when it came, as Unix nanoseconds of the watchdog's last look.
type letter struct {
	msg any
	at  int64
}

// queue is a ring of messages that grows as needed and gives memory back when it is empty.
// The zero value is empty and takes no memory.
type queue struct {
	ring []letter
	head int
	n    int
}

func (q *queue) push(msg any, at int64) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = letter{msg, at}
	q.n++
}

// grow doubles the room, which stays a power of two.
func (q *queue) grow() {
	bigger := make([]letter, max(firstRoom, 2*len(q.ring)))
	for i := range q.n {
		bigger[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = bigger, 0
}

// pop takes the oldest message; the queue must not be empty.
func (q *queue) pop() any {
	msg := q.ring[q.head].msg
	q.ring[q.head].msg = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	if q.n == 0 && len(q.ring) > idleRoom {
		q.ring, q.head = nil, 0
	}
	return msg
}

// oldestFor is how long the oldest message has waited.
func (q *queue) oldestFor(now int64) time.Duration {
	if q.n == 0 {
		return 0
	}
	return max(time.Duration(now-q.ring[q.head].at), 0)
}

// drain empties the queue and returns what was in it, oldest first.
func (q *queue) drain() (all []any) {
	for q.n > 0 {
		all = append(all, q.pop())
	}
	*q = queue{}
	return all
}
