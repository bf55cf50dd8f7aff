package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Limits of the network.
const (
	// streamRoom is how many bytes a connection holds before writing to it blocks.
	streamRoom = 256 << 10
	// backlog is how many connections wait to be accepted.
	backlog = 128
	// packetRoom is how many packets wait to be read; more are lost.
	packetRoom = 1024
	// resendAfter is what a lost segment of a stream costs.
	resendAfter = 200 * time.Millisecond
	// firstPort is the first one given to those who ask for port 0, or dial.
	firstPort = 40_000
)

// Net is the network of a run, in memory. Hosts are reached by name. Connections and listeners
// work as those of package net do, at every level; in a seeded run they may be used by actors'
// jobs, by what Go runs, and by the test itself. All its faults can be changed at any time.
type Net struct {
	k *Kit

	mu        sync.Mutex
	rng       *rand.Rand
	hosts     map[string]*Host
	names     []string
	listeners map[string]*listener
	packets   map[string]*packetConn
	links     map[[2]string]*link
	usual     quality
	port      int
}

// quality is what a link does to what passes over it.
type quality struct {
	least, most time.Duration
	lost        float64
}

// link is one direction between two hosts.
type link struct {
	quality
	cut bool
	// stalled is what waits for a cut to heal; lost packets do not.
	stalled []func()
}

// Host is one end of the network.
type Host struct {
	n    *Net
	name string
}

// Net is the run's network.
func (k *Kit) Net() *Net {
	if k.net == nil {
		k.net = &Net{
			k: k, rng: rand.New(rand.NewPCG(k.seed, 0x6e6574)), hosts: map[string]*Host{}, listeners: map[string]*listener{},
			packets: map[string]*packetConn{}, links: map[[2]string]*link{}, port: firstPort,
		}
	}
	return k.net
}

// Host returns the host of a name, which is made when it is first asked for.
func (n *Net) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		h = &Host{n, name}
		n.hosts[name], n.names = h, append(n.names, name)
	}
	return h
}

// Delay makes everything between all hosts take between least and most. What was sent to a
// connection stays in order; packets may overtake each other.
func (n *Net) Delay(least, most time.Duration) {
	n.each(func(q *quality) { q.least, q.most = least, most })
}

// Drop loses that share of what is sent: of packets for good, of connections until it is sent
// again.
func (n *Net) Drop(share float64) {
	n.each(func(q *quality) { q.lost = share })
}

// Link sets the quality of what a sends to b.
func (n *Net) Link(a, b string, least, most time.Duration, lost float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(a, b).quality = quality{least, most, lost}
}

// Cut lets nothing pass between two hosts, in either direction: packets are lost, connections
// stall.
func (n *Net) Cut(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(a, b).cut, n.link(b, a).cut = true, true
	n.k.Note("net: cut %s from %s", a, b)
}

// CutOneWay lets nothing pass from a to b.
func (n *Net) CutOneWay(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(a, b).cut = true
	n.k.Note("net: cut the way from %s to %s", a, b)
}

// Isolate cuts a host off from all others.
func (n *Net) Isolate(a string) {
	for _, b := range n.others(a) {
		n.Cut(a, b)
	}
}

// Heal undoes Cut.
func (n *Net) Heal(a, b string) {
	n.mu.Lock()
	n.k.Note("net: heal %s and %s", a, b)
	waiting := append(n.link(a, b).heal(), n.link(b, a).heal()...)
	n.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// Rejoin heals everything between a host and all others.
func (n *Net) Rejoin(a string) {
	for _, b := range n.others(a) {
		n.Heal(a, b)
	}
}

// Swizzle isolates some of the hosts, chosen by the seed, one after the other in one order and
// lets them rejoin in another, all within d. It returns at once.
func (n *Net) Swizzle(d time.Duration) {
	n.mu.Lock()
	victims := slices.Clone(n.names)
	n.rng.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	victims = victims[:n.rng.IntN(len(victims)+1)]
	back := slices.Clone(victims)
	n.rng.Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
	cuts, heals := n.moments(len(victims), 0, d/2), n.moments(len(victims), d/2, d)
	n.mu.Unlock()
	clock := n.k.Clock()
	for i := range victims {
		clock.AfterFunc(cuts[i], func() { n.Isolate(victims[i]) })
		clock.AfterFunc(heals[i], func() { n.Rejoin(back[i]) })
	}
}

// moments chooses so many moments in a span, in order. The lock is held.
func (n *Net) moments(count int, from, to time.Duration) []time.Duration {
	at := make([]time.Duration, count)
	for i := range at {
		at[i] = from + time.Duration(n.rng.Int64N(max(int64(to-from), 1)))
	}
	slices.Sort(at)
	return at
}

func (n *Net) others(a string) (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.names {
		if b != a {
			all = append(all, b)
		}
	}
	return all
}

// each changes the quality of all links, those included that are made later.
func (n *Net) each(f func(*quality)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.usual)
	for _, l := range n.links {
		f(&l.quality)
	}
}

// link returns one direction. The lock is held.
func (n *Net) link(from, to string) *link {
	key := [2]string{from, to}
	l := n.links[key]
	if l == nil {
		l = &link{quality: n.usual}
		n.links[key] = l
	}
	return l
}

// heal returns what was waiting. The lock is held.
func (l *link) heal() []func() {
	waiting := l.stalled
	l.cut, l.stalled = false, nil
	return waiting
}

// delay chooses how long something takes. The lock is held.
func (n *Net) delay(q quality) time.Duration {
	d := q.least
	if q.most > q.least {
		d += time.Duration(n.rng.Int64N(int64(q.most - q.least)))
	}
	return d
}

// carry calls arrive once something that must not be lost has passed from one host to the
// other, not before the moment after, and returns when that will be. The lock is held.
func (n *Net) carry(from, to string, after time.Time, arrive func()) time.Time {
	l, now := n.link(from, to), n.k.Clock().Now()
	d := n.delay(l.quality)
	for l.lost > 0 && n.rng.Float64() < l.lost {
		d += resendAfter
	}
	d = max(d, after.Sub(now))
	n.k.Clock().AfterFunc(d, func() { n.pass(l, arrive) })
	return now.Add(d)
}

// pass lets something arrive unless the link is cut.
func (n *Net) pass(l *link, arrive func()) {
	n.mu.Lock()
	if l.cut {
		l.stalled = append(l.stalled, arrive)
		n.mu.Unlock()
		return
	}
	n.mu.Unlock()
	arrive()
}

// nextPort gives out a port. The lock is held.
func (n *Net) nextPort() string {
	n.port++
	return fmt.Sprint(n.port)
}

// addr is an address of the network.
type addr struct{ network, text string }

// Network implements net.Addr.
func (a addr) Network() string { return a.network }

// String implements net.Addr.
func (a addr) String() string { return a.text }

// address names a place on a host; port 0 means any. The lock is held.
func (h *Host) address(network, port string) addr {
	if port == "0" || port == "" {
		port = h.n.nextPort()
	}
	return addr{network, net.JoinHostPort(h.name, port)}
}

func failure(op string, a addr, err error) error {
	return &net.OpError{Op: op, Net: a.network, Addr: a, Err: err}
}

// Listen makes a listener on a port of the host; 0 means any.
func (h *Host) Listen(port int) (net.Listener, error) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	l := &listener{n: h.n, at: h.address("tcp", portText(port))}
	if h.n.listeners[l.at.text] != nil {
		return nil, failure("listen", l.at, syscall.EADDRINUSE)
	}
	h.n.listeners[l.at.text] = l
	return l, nil
}

// Dial connects to an address of another host.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	return h.DialContext(ctx, "tcp", address)
}

// DialContext is Dial in the form that http.Transport wants.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, target := h.n, addr{network, address}
	n.mu.Lock()
	d := &dialing{wake: &cond{}}
	local := h.address(network, "0")
	n.carry(h.name, to, time.Time{}, func() {
		d.answer(n.accept(local, target, h.name, to))
	})
	n.mu.Unlock()
	defer n.k.wakeOn(ctx, d.wake)()
	n.k.level.wait(d.wake, func() bool { return d.done() || ctx.Err() != nil })
	return d.result(ctx, target)
}

// dialing is a connection that is being made.
type dialing struct {
	wake *cond
	mu   sync.Mutex
	over bool
	conn *conn
	err  error
}

func (d *dialing) answer(c *conn, err error) {
	d.mu.Lock()
	d.over, d.conn, d.err = true, c, err
	d.mu.Unlock()
	d.wake.signal()
}

func (d *dialing) done() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

func (d *dialing) result(ctx context.Context, target addr) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.over:
		return nil, failure("dial", target, ctx.Err())
	case d.err != nil:
		return nil, failure("dial", target, d.err)
	}
	return d.conn, nil
}

// portText is a port as part of an address.
func portText(port int) string { return fmt.Sprint(port) }
