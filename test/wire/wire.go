// Package wire is a loopback network whose lines can be cut: each party has an address of its own, and its listener hangs up on those
// whose line to it is cut.
package wire

import (
	"net"
	"sync"
)

// Listener accepts connections of parties that are told apart by their IP address.
type Listener struct {
	net.Listener

	mu    sync.Mutex
	cut   map[string]bool
	conns map[*conn]string
}

// Listen binds addr, whose port may be 0.
func Listen(addr string) (*Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Listener{Listener: l, cut: map[string]bool{}, conns: map[*conn]string{}}, nil
}

// Cut hangs up on the parties at the IP addresses, and on everyone of them that calls, until Mend.
func (l *Listener) Cut(ips ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ip := range ips {
		l.cut[ip] = true
	}
	for c, ip := range l.conns {
		if l.cut[ip] {
			_ = c.Conn.Close()
		}
	}
}

// Mend lets everyone call again.
func (l *Listener) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cut)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := l.admit(c); own != nil {
			return own, nil
		}
		_ = c.Close()
	}
}

func (l *Listener) admit(c net.Conn) net.Conn {
	ip, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut[ip] {
		return nil
	}
	own := &conn{Conn: c, of: l}
	l.conns[own] = ip
	return own
}

type conn struct {
	net.Conn
	of *Listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
