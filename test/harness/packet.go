package harness

import (
	"net"
	"os"
	"syscall"
	"time"
)

// packetConn is a net.PacketConn.
type packetConn struct {
	n      *Net
	host   string
	at     addr
	wake   cond
	queue  []packet
	closed bool
	read   deadline
}

type packet struct {
	from addr
	data []byte
}

// ListenPacket makes a packet connection on a port of the host; 0 means any.
func (h *Host) ListenPacket(port int) (net.PacketConn, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	p := &packetConn{n: h.n, host: h.name, at: h.address("udp", portText(port))}
	if h.n.packets[p.at.text] != nil {
		return nil, failure("listen", p.at, syscall.EADDRINUSE)
	}
	h.n.packets[p.at.text] = p
	return p, nil
}

// ReadFrom implements net.PacketConn.
func (p *packetConn) ReadFrom(b []byte) (got int, from net.Addr, err error) {
	ok := p.n.k.level.wait(&p.wake, func() bool {
		p.n.mu.Lock()
		defer p.n.mu.Unlock()
		got, from, err = p.tryRead(b)
		return from != nil || err != nil
	})
	if !ok {
		return 0, nil, failure("read", p.at, net.ErrClosed)
	}
	return got, from, err
}

func (p *packetConn) tryRead(b []byte) (int, net.Addr, error) {
	switch {
	case p.closed:
		return 0, nil, failure("read", p.at, net.ErrClosed)
	case p.read.passed:
		return 0, nil, failure("read", p.at, os.ErrDeadlineExceeded)
	case len(p.queue) == 0:
		return 0, nil, nil
	}
	next := p.queue[0]
	p.queue = p.queue[1:]
	return copy(b, next.data), next.from, nil
}

// WriteTo implements net.PacketConn: the packet is lost when nobody is there, the link is cut
// or the dice say so.
func (p *packetConn) WriteTo(b []byte, to net.Addr) (int, error) {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if p.closed {
		return 0, failure("write", p.at, net.ErrClosed)
	}
	host, _, err := net.SplitHostPort(to.String())
	if err != nil {
		return 0, failure("write", p.at, err)
	}
	l := p.n.link(p.host, host)
	if l.lost > 0 && p.n.rng.Float64() < l.lost {
		return len(b), nil
	}
	data, target := append([]byte(nil), b...), to.String()
	p.n.k.Clock().AfterFunc(p.n.delay(l.quality), func() { p.n.deliver(l, packet{p.at, data}, target) })
	return len(b), nil
}

// deliver gives a packet to whoever listens.
func (n *Net) deliver(l *link, pkt packet, to string) {
	n.mu.Lock()
	p := n.packets[to]
	if p == nil || l.cut || len(p.queue) >= packetRoom {
		n.mu.Unlock()
		return
	}
	p.queue = append(p.queue, pkt)
	n.mu.Unlock()
	p.wake.signal()
}

// Close implements net.PacketConn.
func (p *packetConn) Close() error {
	p.n.mu.Lock()
	p.closed = true
	p.read.clear()
	if p.n.packets[p.at.text] == p {
		delete(p.n.packets, p.at.text)
	}
	p.n.mu.Unlock()
	p.wake.signal()
	return nil
}

// LocalAddr implements net.PacketConn.
func (p *packetConn) LocalAddr() net.Addr { return p.at }

// SetDeadline implements net.PacketConn.
func (p *packetConn) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (p *packetConn) SetReadDeadline(t time.Time) error {
	p.n.setDeadline(&p.read, &p.wake, t)
	return nil
}

// SetWriteDeadline implements net.PacketConn: writing never waits.
func (p *packetConn) SetWriteDeadline(time.Time) error { return nil }
