package harness

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// listener is a net.Listener.
type listener struct {
	n      *Net
	at     addr
	wake   cond
	queue  []*conn
	closed bool
}

// accept makes both ends of a connection and queues one of them.
func (n *Net) accept(local, target addr, from, to string) (*conn, error) {
	n.mu.Lock()
	l := n.listeners[target.text]
	if l == nil || len(l.queue) >= backlog {
		n.mu.Unlock()
		return nil, syscall.ECONNREFUSED
	}
	there, back := &half{from: from, to: to}, &half{from: to, to: from}
	mine := &conn{n: n, in: back, out: there, local: local, remote: target}
	theirs := &conn{n: n, in: there, out: back, local: target, remote: local}
	l.queue = append(l.queue, theirs)
	n.mu.Unlock()
	l.wake.signal()
	return mine, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (c net.Conn, err error) {
	ok := l.n.k.level.wait(&l.wake, func() bool {
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		if len(l.queue) > 0 {
			c, l.queue = l.queue[0], l.queue[1:]
		}
		return c != nil || l.closed
	})
	if c == nil || !ok {
		return nil, failure("accept", l.at, net.ErrClosed)
	}
	return c, nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.n.mu.Lock()
	l.closed = true
	if l.n.listeners[l.at.text] == l {
		delete(l.n.listeners, l.at.text)
	}
	queue := l.queue
	l.queue = nil
	l.n.mu.Unlock()
	for _, c := range queue {
		c.Close()
	}
	l.wake.signal()
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.at }

// half is one direction of a connection.
type half struct {
	from, to string
	wake     cond
	// arrived can be read; room is what it and what is on its way take.
	arrived []byte
	used    int
	// flying is what is on its way, oldest first, and last when the latest of it arrives.
	flying []func()
	last   time.Time
	// ended: the writer has closed, and that has arrived; gone: the reader has.
	ended, gone bool
}

// conn is a net.Conn.
type conn struct {
	n             *Net
	in, out       *half
	local, remote addr
	closed        bool
	read, write   deadline
}

// deadline is a point in time that wakes those who wait.
type deadline struct {
	passed bool
	stop   func() bool
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (got int, err error) {
	ok := c.n.k.level.wait(&c.in.wake, func() bool {
		c.n.mu.Lock()
		defer c.n.mu.Unlock()
		got, err = c.tryRead(b)
		return got > 0 || err != nil || len(b) == 0
	})
	if !ok {
		return 0, failure("read", c.remote, net.ErrClosed)
	}
	if got > 0 {
		c.in.wake.signal()
	}
	return got, err
}

func (c *conn) tryRead(b []byte) (int, error) {
	switch {
	case c.closed:
		return 0, failure("read", c.remote, net.ErrClosed)
	case c.read.passed:
		return 0, failure("read", c.remote, os.ErrDeadlineExceeded)
	case len(c.in.arrived) > 0:
		got := copy(b, c.in.arrived)
		c.in.arrived = c.in.arrived[got:]
		c.in.used -= got
		return got, nil
	case c.in.ended:
		return 0, io.EOF
	}
	return 0, nil
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (sent int, err error) {
	for {
		part, err := c.tryWrite(b[sent:])
		if sent += part; err != nil || sent == len(b) {
			return sent, err
		}
		ok := c.n.k.level.wait(&c.out.wake, func() bool {
			c.n.mu.Lock()
			defer c.n.mu.Unlock()
			return c.unwritable() != nil || c.out.used < streamRoom
		})
		if !ok {
			return sent, failure("write", c.remote, net.ErrClosed)
		}
	}
}

// unwritable is why nothing can be written any more. The lock is held.
func (c *conn) unwritable() error {
	switch {
	case c.closed:
		return failure("write", c.remote, net.ErrClosed)
	case c.write.passed:
		return failure("write", c.remote, os.ErrDeadlineExceeded)
	case c.out.gone:
		return failure("write", c.remote, syscall.EPIPE)
	}
	return nil
}

func (c *conn) tryWrite(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if err := c.unwritable(); err != nil {
		return 0, err
	}
	part := min(len(b), streamRoom-c.out.used)
	if part <= 0 {
		return 0, nil
	}
	h, data := c.out, append([]byte(nil), b[:part]...)
	h.used += part
	c.send(func() { h.arrived = append(h.arrived, data...) })
	return part, nil
}

// send lets f happen at the other end, behind what was sent before: whichever timer comes
// first brings what has been on its way for longest. The lock is held, also when f is called.
func (c *conn) send(f func()) {
	h := c.out
	h.flying = append(h.flying, f)
	h.last = c.n.carry(h.from, h.to, h.last, func() {
		c.n.mu.Lock()
		h.flying[0]()
		h.flying = h.flying[1:]
		c.n.mu.Unlock()
		c.in.wake.signal()
		h.wake.signal()
	})
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.n.mu.Lock()
	if c.closed {
		c.n.mu.Unlock()
		return failure("close", c.remote, net.ErrClosed)
	}
	c.closed = true
	c.read.clear()
	c.write.clear()
	in, out := c.in, c.out
	c.send(func() { out.ended, in.gone = true, true })
	c.n.mu.Unlock()
	in.wake.signal()
	out.wake.signal()
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.n.setDeadline(&c.read, &c.in.wake, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.n.setDeadline(&c.write, &c.out.wake, t)
	return nil
}

func (d *deadline) clear() {
	if d.stop != nil {
		d.stop()
	}
	*d = deadline{}
}

// setDeadline arms a deadline; the zero time means none.
func (n *Net) setDeadline(d *deadline, wake *cond, t time.Time) {
	n.mu.Lock()
	d.clear()
	left := t.Sub(n.k.Clock().Now())
	switch {
	case t.IsZero():
	case left <= 0:
		d.passed = true
	default:
		d.stop = n.k.Clock().AfterFunc(left, func() {
			n.mu.Lock()
			d.passed = true
			n.mu.Unlock()
			wake.signal()
		})
	}
	n.mu.Unlock()
	wake.signal()
}
