package gossip

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// memNet is a network in memory: hosts by address, each with a side; only hosts on one side hear each other.
type memNet struct {
	mu    sync.Mutex
	hosts map[string]*memHost
	side  map[string]int
}

const memDelay = time.Millisecond

func newMemNet() *memNet { return &memNet{hosts: map[string]*memHost{}, side: map[string]int{}} }

// place moves a host to a side.
func (n *memNet) place(addr string, side int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.side[addr] = side
}

// reach finds a host as another one sees it.
func (n *memNet) reach(from, to string) *memHost {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.side[from] != n.side[to] {
		return nil
	}
	return n.hosts[to]
}

func (n *memNet) host(addr netip.AddrPort) *memHost {
	h := &memHost{net: n, addr: addr, packets: make(chan *memberlist.Packet, 4096), streams: make(chan net.Conn, 64), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr.String()] = h
	return h
}

// memHost is the memberlist.Transport of one host.
type memHost struct {
	net     *memNet
	addr    netip.AddrPort
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	once    sync.Once
}

func (h *memHost) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return h.addr.Addr().AsSlice(), int(h.addr.Port()), nil
}

func (h *memHost) WriteTo(b []byte, addr string) (time.Time, error) {
	now := time.Now()
	if to := h.net.reach(h.addr.String(), addr); to != nil {
		b = append([]byte(nil), b...)
		time.AfterFunc(memDelay, func() { to.take(b, h.addr) })
	}
	return now, nil
}

// take drops what a full or closed host cannot take, as UDP does.
func (h *memHost) take(b []byte, from netip.AddrPort) {
	select {
	case <-h.done:
	case h.packets <- &memberlist.Packet{Buf: b, From: net.UDPAddrFromAddrPort(from), Timestamp: time.Now()}:
	default:
	}
}

func (h *memHost) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	to := h.net.reach(h.addr.String(), addr)
	if to == nil {
		time.Sleep(timeout)
		return nil, errors.New("no route to host")
	}
	here, there := net.Pipe()
	select {
	case to.streams <- named{there, net.TCPAddrFromAddrPort(h.addr)}:
		return named{here, net.TCPAddrFromAddrPort(to.addr)}, nil
	case <-to.done:
		return nil, errors.New("connection refused")
	}
}

// named is a pipe with the address of its other end.
type named struct {
	net.Conn
	peer net.Addr
}

func (c named) RemoteAddr() net.Addr { return c.peer }

func (h *memHost) PacketCh() <-chan *memberlist.Packet { return h.packets }

func (h *memHost) StreamCh() <-chan net.Conn { return h.streams }

// Shutdown takes the host off the network.
func (h *memHost) Shutdown() error {
	h.once.Do(func() {
		close(h.done)
		h.net.mu.Lock()
		defer h.net.mu.Unlock()
		if h.net.hosts[h.addr.String()] == h {
			delete(h.net.hosts, h.addr.String())
		}
	})
	return nil
}
