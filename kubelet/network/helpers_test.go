package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/nodeactor/nodeactor/test/netspace"
)

type memoryLedger = netspace.Ledger

var enterNewNode, newPod = netspace.Enter, netspace.New

func testConfig(l Ledger) Config {
	return Config{Bridge: "na-test", Prefix: "natest", PodCIDR: netip.MustParsePrefix("10.244.0.0/24"), Ledger: l}
}

func open(t testing.TB, cfg Config) *Network {
	t.Helper()
	n, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// setUp opens and sets up the pod network of a new node.
func setUp(t testing.TB) *Network {
	t.Helper()
	enterNewNode(t)
	n := open(t, testConfig(memoryLedger{}))
	if err := n.Setup(bounded(t)); err != nil {
		t.Fatal(err)
	}
	return n
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// in runs f in the namespace at path.
func in[T any](t testing.TB, path string, f func() (T, error)) T {
	t.Helper()
	ns, err := netns.GetFromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	var result T
	err = inside(ns, func() (err error) {
		result, err = f()
		return err
	})
	if err != nil {
		t.Fatalf("in %s: %v", path, err)
	}
	return result
}

// echoPeer accepts connections and tells each who it is seen as.
func echoPeer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprint(conn, conn.RemoteAddr().(*net.TCPAddr).IP)
		conn.Close()
	}
}

// serveIn answers on port 80 of a pod until the test ends.
func serveIn(t testing.TB, path string) {
	t.Helper()
	t.Cleanup(in(t, path, serveBriefly))
}

// seenFrom dials an address from the namespace at path and returns as whom the other side sees the caller.
func seenFrom(t testing.TB, path string, addr netip.Addr) string {
	t.Helper()
	return in(t, path, func() (string, error) { return dial(addr) })
}

func dial(addr netip.Addr) (string, error) {
	conn, err := net.DialTimeout("tcp4", netip.AddrPortFrom(addr, 80).String(), 3*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	raw, err := io.ReadAll(conn)
	return string(raw), err
}

func linkNames(t testing.TB) []string {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	return names
}

func attach(t testing.TB, n *Network, uid, path string) netip.Addr {
	t.Helper()
	addrs, err := n.Attach(bounded(t), uid, path)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}

// serveBriefly answers on port 80 of the current namespace until the returned function is called.
func serveBriefly() (stop func(), err error) {
	l, err := net.Listen("tcp4", ":80")
	if err != nil {
		return nil, err
	}
	go echoPeer(l)
	return func() { l.Close() }, nil
}
