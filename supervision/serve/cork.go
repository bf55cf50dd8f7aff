package serve

import (
	"net"
	"sync"
	"time"
)

const (
	// smallRecord is up to how many bytes a write is held back: the headers of an answer have some 70 as a TLS record.
	smallRecord = 160
	// holdWithin is how long a small write is held back at most.
	holdWithin = 250 * time.Microsecond
)

// corked is a listener whose connections put a small write and the next one together. The server of HTTP/2 writes the headers of an answer out
// before it takes the body from a handler that has set some: two records, two system calls here and two wake-ups of the client.
type corked struct{ net.Listener }

// Accept implements net.Listener.
func (l corked) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newCork(c), nil
}

// cork is a connection that holds a small write back until the next one comes, or holdWithin is over.
type cork struct {
	net.Conn
	flush *time.Timer

	mu   sync.Mutex
	held []byte
	err  error // of a write that was reported as done
}

func newCork(c net.Conn) *cork {
	k := &cork{Conn: c}
	k.flush = time.AfterFunc(time.Hour, k.release)
	k.flush.Stop()
	return k
}

// Write implements net.Conn. It keeps nothing of b.
func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if len(c.held) > 0 {
		c.flush.Stop()
		return c.together(b)
	}
	if len(b) > smallRecord {
		return c.Conn.Write(b)
	}
	c.held = append(c.held, b...)
	c.flush.Reset(holdWithin)
	return len(b), nil
}

// together writes what is held and b. The lock is held.
func (c *cork) together(b []byte) (int, error) {
	held := len(c.held)
	c.held = append(c.held, b...)
	n, err := c.Conn.Write(c.held)
	c.held, c.err = c.held[:0], err
	return max(0, n-held), err
}

// release writes what was held back for long enough.
func (c *cork) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushHeld()
}

// flushHeld writes what is held. The lock is held.
func (c *cork) flushHeld() {
	if len(c.held) > 0 && c.err == nil {
		_, _ = c.together(nil)
	}
}

// Close writes what is held, and closes the connection. It waits for no write that is under way: that one ends with the connection.
func (c *cork) Close() error {
	c.flush.Stop()
	c.releaseIfFree()
	return c.Conn.Close()
}

// SetWriteDeadline implements net.Conn. What is held was written under the deadline there was: TLS says its farewell and then lets no time for
// more.
func (c *cork) SetWriteDeadline(t time.Time) error {
	c.releaseIfFree()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn, as SetWriteDeadline does.
func (c *cork) SetDeadline(t time.Time) error {
	c.releaseIfFree()
	return c.Conn.SetDeadline(t)
}

// releaseIfFree writes what is held, unless a write is under way, which holds the lock for as long as the other side reads nothing.
func (c *cork) releaseIfFree() {
	if c.mu.TryLock() {
		c.flushHeld()
		c.mu.Unlock()
	}
}
