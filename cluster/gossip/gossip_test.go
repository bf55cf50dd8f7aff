package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// memory is a Peers that forgets with the test.
type memory struct {
	mu    sync.Mutex
	addrs []string
}

func (m *memory) Known() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.addrs...), nil
}

func (m *memory) Remember(addrs []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range addrs {
		if !strings.Contains(strings.Join(m.addrs, " ")+" ", a+" ") {
			m.addrs = append(m.addrs, a)
		}
	}
	return nil
}

// host is one host of a test cluster, under supervision as in the product.
type host struct {
	t     *testing.T
	addr  netip.AddrPort
	view  *View
	peers *memory
	sys   *supervision.System
	net   *memHost
}

func addrOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(1 + i%250)}), 7946)
}

// worker may take as long to stop as a round of dialling takes.
func worker(id string, start func() supervision.Handler) supervision.Spec {
	s := harness.Worker(id, start)
	s.StopTimeout = 10 * time.Second
	return s
}

// boot starts host i in one of its lives; seeds are gossip addresses.
func boot(t *testing.T, n *memNet, i int, life uint64, seeds ...string) *host {
	t.Helper()
	h := &host{t: t, addr: addrOf(i), view: &View{}, peers: &memory{addrs: seeds}}
	h.net = n.host(h.addr)
	cfg := Config{
		Name: NodeName(fmt.Sprintf("host%02d", i), life), Bind: h.addr, Key: testKey, Cluster: "test", Meta: Meta{ID: fmt.Sprintf("host%02d", i), Epoch: life},
		Pace: Calm(), Log: slog.New(slog.DiscardHandler), Transport: h.net,
	}
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.sys = sys
	member := worker("gossip", func() supervision.Handler { return Member(cfg, h.view, nil) })
	rejoin := worker("rejoin", func() supervision.Handler { return Rejoin(cfg.Name, h.view, h.peers) })
	if err := sys.Start(harness.Group("cluster", harness.OneForOne, member, rejoin)); err != nil {
		t.Fatal(err)
	}
	return h
}

// stop ends the hosts, and waits for the probes of memberlist that nobody waits for.
func stop(hosts ...*host) {
	for _, h := range hosts {
		h.stop()
	}
	time.Sleep(time.Minute)
}

func (h *host) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if r := h.sys.Stop(ctx); len(r.Unstopped) > 0 {
		h.t.Errorf("%s would not stop: %v %v", h.addr, r.Unstopped, r.Stacks)
	}
}

// see waits until every host sees as many members, and returns how long that took.
func see(t *testing.T, hosts []*host, want int, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		agree := 0
		for _, h := range hosts {
			if len(h.view.Alive()) == want {
				agree++
			}
		}
		if agree == len(hosts) {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("after %s only %d of %d hosts see %d members", limit, agree, len(hosts), want)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestCheck08_Gossip: 20 hosts converge, see a crash, heal a partition of ten minutes, and hear of new metadata, in virtual time.
func TestCheck08_Gossip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		n := newMemNet()
		var hosts []*host
		seeds := []string{addrOf(0).String(), addrOf(1).String(), addrOf(2).String()}
		for i := range many {
			hosts = append(hosts, boot(t, n, i, 1, seeds...))
		}
		t.Logf("converged in %s", see(t, hosts, many, time.Minute))

		// Crash: off the network without a word.
		crashed := hosts[many-1]
		n.place(crashed.addr.String(), 99)
		rest := hosts[:many-1]
		t.Logf("crash known to all in %s", see(t, rest, many-1, time.Minute))
		crashed.stop()
		reborn := boot(t, n, many-1, 2, seeds...)
		n.place(reborn.addr.String(), 0)
		hosts[many-1] = reborn
		t.Logf("its next life known to all in %s", see(t, hosts, many, time.Minute))

		for i, h := range hosts {
			n.place(h.addr.String(), i%2)
		}
		see(t, hosts, many/2, time.Minute)
		time.Sleep(10 * time.Minute)
		for _, h := range hosts {
			n.place(h.addr.String(), 0)
		}
		healed := see(t, hosts, many, time.Minute)
		t.Logf("a partition of 10 min healed in %s", healed)
		if healed > 20*time.Second {
			t.Errorf("healing took %s", healed)
		}

		hosts[3].sys.Send(hosts[3].sys.Ref("cluster/gossip"), SetMeta{Meta{ID: "host03", Class: "large"}})
		time.Sleep(5 * time.Second)
		for _, h := range hosts {
			if got := h.view.Alive()[3].Meta.Class; got != "large" {
				t.Errorf("%s sees class %q of host03", h.addr, got)
			}
		}
		stop(hosts...)
	})
}

// Without the rejoin actor the halves stay apart: the reason why it exists.
func TestMemberlistAloneNeverHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		var hosts []*host
		for i := range 4 {
			hosts = append(hosts, boot(t, n, i, 1, addrOf(0).String()))
		}
		see(t, hosts, 4, time.Minute)
		for i, h := range hosts {
			h.peers.mu.Lock()
			h.peers.addrs = nil
			h.peers.mu.Unlock()
			n.place(h.addr.String(), i%2)
		}
		see(t, hosts, 2, time.Minute)
		for _, h := range hosts {
			h.peers.mu.Lock()
			h.peers.addrs = nil
			h.peers.mu.Unlock()
		}
		time.Sleep(10 * time.Minute)
		for i, h := range hosts {
			known, _ := h.peers.Known()
			for _, k := range known {
				if i%2 != int(netip.MustParseAddrPort(k).Addr().As4()[3]-1)%2 {
					t.Fatalf("%s still knows %s", h.addr, k)
				}
			}
			n.place(h.addr.String(), 0)
		}
		time.Sleep(30 * time.Minute)
		for _, h := range hosts {
			if got := len(h.view.Alive()); got != 2 {
				t.Errorf("%s sees %d members: memberlist heals by itself now, and the rejoin actor may go", h.addr, got)
			}
		}
		stop(hosts...)
	})
}

func TestP78_MetadataThatIsTooLargeIsRefused(t *testing.T) {
	fits := Meta{ID: strings.Repeat("x", memberlist.MetaMaxSize-len(`{"i":""}`))}
	if b, err := fits.Encode(); err != nil || len(b) != memberlist.MetaMaxSize {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	over := Meta{ID: fits.ID + "x"}
	if _, err := over.Encode(); !errors.Is(err, ErrMeta) {
		t.Errorf("513 bytes: %v", err)
	}
}

func TestP78_AMemberWithoutKeyIsRefused(t *testing.T) {
	for _, key := range [][]byte{nil, {}, make([]byte, 15), make([]byte, 33)} {
		if _, err := (Config{Name: "a", Key: key, Log: slog.Default()}).memberlist(&delegate{}); !errors.Is(err, ErrConfig) {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
}

// A host with another key, or with none, is not heard.
func TestP78_StrangersStayOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := boot(t, n, 0, 1)
		b := boot(t, n, 1, 1, addrOf(0).String())
		see(t, []*host{a, b}, 2, time.Minute)
		for i, key := range [][]byte{[]byte("another key of32 bytes.........."), nil} {
			cfg := memberlist.DefaultLANConfig()
			cfg.Name, cfg.Label, cfg.SecretKey, cfg.Transport = "stranger", "test", key, n.host(addrOf(10+i))
			cfg.Logger = bridge(slog.New(slog.DiscardHandler))
			s, err := memberlist.Create(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if joined, err := s.Join([]string{a.addr.String()}); err == nil {
				t.Errorf("a stranger reached %d members", joined)
			}
			time.Sleep(time.Minute)
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		for _, h := range []*host{a, b} {
			if got := len(h.view.Alive()); got != 2 {
				t.Errorf("%s sees %d members", h.addr, got)
			}
		}
		stop(a, b)
	})
}

// A taken port is a bind failure, on the real network.
func TestTakenPortIsABindFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sys, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	faults := make(chan supervision.Fault, 100)
	sys.Faults().Subscribe(func(f supervision.Fault) { faults <- f })
	cfg := Config{
		Name: "a.1", Bind: netip.MustParseAddrPort(l.Addr().String()), Key: testKey, Meta: Meta{ID: "a"}, Pace: Calm(), Log: slog.New(slog.DiscardHandler),
	}
	gossip := worker("gossip", func() supervision.Handler { return Member(cfg, &View{}, nil) })
	if err := sys.Start(harness.Group("cluster", harness.OneForOne, gossip)); err != nil {
		t.Fatal(err)
	}
	if f := <-faults; f.Kind != supervision.BindFailure {
		t.Errorf("the fault is %v", f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sys.Stop(ctx)
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add([]byte(`{"i":"a","a":"10.0.0.1:6443","e":3,"c":"small"}`))
	f.Add([]byte(`{`))
	f.Add([]byte{0xff, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMeta(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			return
		}
		if back, err := DecodeMeta(again); err != nil || back.ID == "" {
			t.Fatalf("%q does not survive: %v", again, err)
		}
	})
}
