package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/ledger"
)

func TestPodsReachEachOtherAndTheNode(t *testing.T) {
	n := setUp(t)
	a, b := newPod(t), newPod(t)
	addrA, addrB := attach(t, n, "a", a), attach(t, n, "b", b)
	serveIn(t, a)
	serveIn(t, b)
	if got := seenFrom(t, a, addrB); got != addrA.String() {
		t.Errorf("b sees a as %s, want %s", got, addrA)
	}
	if got := seenFrom(t, a, addrA); got != addrA.String() {
		t.Errorf("a sees itself as %s", got)
	}
	if got := seenFrom(t, a, netip.MustParseAddr("127.0.0.1")); got != "127.0.0.1" {
		t.Errorf("over its loopback a sees %s", got)
	}
	if got, err := dial(addrB); got != n.Gateway().String() {
		t.Errorf("b sees the node as %s (%v), want %s", got, err, n.Gateway())
	}
	l, err := net.Listen("tcp4", n.Gateway().String()+":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echoPeer(l)
	if got := seenFrom(t, b, n.Gateway()); got != addrB.String() {
		t.Errorf("the node sees b as %s, want %s", got, addrB)
	}
}

// uplink connects the node with an outside world that has no route to pods.
func uplink(t *testing.T, mtu int) (outside string) {
	t.Helper()
	outside = newPod(t)
	ns, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "uplink", mtu
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace, veth.PeerMTU = "world", netlink.NsFd(ns.Fd()), uint32(mtu)
	must(t, netlink.LinkAdd(veth))
	address(t, "uplink", "192.0.2.1/24")
	in(t, outside, func() (int, error) {
		address(t, "world", "192.0.2.2/24")
		return 0, nil
	})
	must(t, netlink.RouteAdd(&netlink.Route{Gw: net.IPv4(192, 0, 2, 2)}))
	return outside
}

func address(t *testing.T, link, cidr string) {
	t.Helper()
	l, err := netlink.LinkByName(link)
	must(t, err)
	addr, err := netlink.ParseAddr(cidr)
	must(t, err)
	must(t, netlink.AddrAdd(l, addr))
	must(t, netlink.LinkSetUp(l))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPodsReachTheWorldAsTheNode(t *testing.T) {
	enterNewNode(t)
	outside := uplink(t, 1380)
	serveIn(t, outside)
	n := open(t, testConfig(memoryLedger{}))
	must(t, n.Setup(bounded(t)))
	pod := newPod(t)
	attach(t, n, "a", pod)
	if got := seenFrom(t, pod, netip.MustParseAddr("192.0.2.2")); got != "192.0.2.1" {
		t.Errorf("the world sees the pod as %s, want the node's 192.0.2.1", got)
	}
	mtu := in(t, pod, func() (int, error) {
		l, err := netlink.LinkByName(podInterface)
		return l.Attrs().MTU, err
	})
	if mtu != 1380 {
		t.Errorf("the pod has MTU %d, want the uplink's 1380", mtu)
	}
}

func TestDirectRangesSeeThePodItself(t *testing.T) {
	enterNewNode(t)
	outside := uplink(t, 1500)
	serveIn(t, outside)
	cfg := testConfig(memoryLedger{})
	cfg.Direct = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	n := open(t, cfg)
	must(t, n.Setup(bounded(t)))
	in(t, outside, func() (int, error) {
		return 0, netlink.RouteAdd(&netlink.Route{Dst: ipNet(cfg.PodCIDR), Gw: net.IPv4(192, 0, 2, 1)})
	})
	pod := newPod(t)
	addr := attach(t, n, "a", pod)
	if got := seenFrom(t, pod, netip.MustParseAddr("192.0.2.2")); got != addr.String() {
		t.Errorf("a direct range sees the pod as %s, want %s", got, addr)
	}
}

func TestEverythingMayBeRepeated(t *testing.T) {
	n := setUp(t)
	pod := newPod(t)
	first := attach(t, n, "a", pod)
	before := linkNames(t)
	for range 3 {
		must(t, n.Setup(bounded(t)))
		if again := attach(t, n, "a", pod); again != first {
			t.Errorf("repeated attach gives %v, first %v", again, first)
		}
	}
	if after := linkNames(t); !slices.Equal(before, after) {
		t.Errorf("links were %v, are %v", before, after)
	}
	if tables := ownTables(t, n); tables != 1 {
		t.Errorf("%d nft tables", tables)
	}
	for range 2 {
		must(t, n.Detach(bounded(t), "a"))
	}
	for range 2 {
		must(t, n.Teardown(bounded(t)))
	}
	if left := linkNames(t); !slices.Equal(left, []string{"lo"}) || ownTables(t, n) != 0 {
		t.Errorf("left are %v and %d tables", left, ownTables(t, n))
	}
}

func ownTables(t *testing.T, n *Network) (count int) {
	t.Helper()
	conn, err := nftables.New(nftables.WithNetNSFd(int(n.ns)))
	must(t, err)
	tables, err := conn.ListTables()
	must(t, err)
	for _, table := range tables {
		if strings.HasPrefix(table.Name, tablePrefix+n.cfg.Prefix) {
			count++
		}
	}
	return count
}

func TestAddressSurvivesRestartAndReboot(t *testing.T) {
	enterNewNode(t)
	kept := memoryLedger{}
	n := open(t, testConfig(kept))
	must(t, n.Setup(bounded(t)))
	pod := newPod(t)
	attach(t, n, "other", newPod(t))
	first := attach(t, n, "a", pod)
	restarted := open(t, testConfig(kept))
	must(t, restarted.Setup(bounded(t)))
	if again := attach(t, restarted, "a", pod); again != first {
		t.Errorf("after a restart the pod has %v, had %v", again, first)
	}
	if fresh := attach(t, restarted, "b", newPod(t)); fresh == first {
		t.Errorf("a new pod got the address %v of another", fresh)
	}
	must(t, restarted.deleteLink(linkOf(t, kept, "a")))
	must(t, restarted.deleteLink("na-test"))
	rebooted := open(t, testConfig(kept))
	must(t, rebooted.Setup(bounded(t)))
	sandbox := newPod(t)
	if again := attach(t, rebooted, "a", sandbox); again != first {
		t.Errorf("after a reboot the pod has %v, had %v", again, first)
	}
	serveIn(t, sandbox)
	if got, err := dial(first); err != nil || got != rebooted.Gateway().String() {
		t.Errorf("the new sandbox answers %q, %v", got, err)
	}
}

func linkOf(t *testing.T, m memoryLedger, uid string) string {
	t.Helper()
	n := &Network{cfg: testConfig(m), alloc: newAllocator(testConfig(m).PodCIDR), pods: map[string]record{}}
	must(t, n.load())
	return n.pods[uid].Link
}

// A new sandbox of a pod whose old one still exists takes over name and address.
func TestNewSandboxOfTheSamePod(t *testing.T) {
	n := setUp(t)
	old, fresh := newPod(t), newPod(t)
	first := attach(t, n, "a", old)
	if again := attach(t, n, "a", fresh); again != first {
		t.Errorf("the new sandbox has %v, the old one had %v", again, first)
	}
	serveIn(t, fresh)
	if _, err := dial(first); err != nil {
		t.Errorf("the new sandbox does not answer: %v", err)
	}
}

// A neighbour that knows the hardware address of an IP address must not be wrong when another pod gets it.
func TestReusedAddressKeepsItsHardwareAddress(t *testing.T) {
	enterNewNode(t)
	cfg := testConfig(memoryLedger{})
	cfg.PodCIDR = netip.MustParsePrefix("10.244.0.0/30")
	n := open(t, cfg)
	must(t, n.Setup(bounded(t)))
	for _, uid := range []string{"a", "b"} {
		pod := newPod(t)
		addr := attach(t, n, uid, pod)
		serveIn(t, pod)
		if _, err := dial(addr); err != nil {
			t.Errorf("pod %s does not answer at %v: %v", uid, addr, err)
		}
		if _, err := n.Attach(bounded(t), "one more", newPod(t)); !errors.Is(err, ErrFull) {
			t.Errorf("with all addresses taken attach says %v", err)
		}
		must(t, n.Detach(bounded(t), uid))
	}
}

func TestSweepRemovesTheDeadAndTheStray(t *testing.T) {
	n := setUp(t)
	dead, alive := newPod(t), newPod(t)
	attach(t, n, "dead", dead)
	addr := attach(t, n, "alive", alive)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = linkName("natest", "no record", 0)
	veth := netlink.NewVeth(attrs)
	veth.PeerName = "straypeer"
	must(t, netlink.LinkAdd(veth))
	attrs.Name = "othervethx"
	veth = netlink.NewVeth(attrs)
	veth.PeerName = "otherpeer"
	must(t, netlink.LinkAdd(veth))
	must(t, n.Sweep(bounded(t), func(uid string) bool { return uid == "alive" }))
	names := linkNames(t)
	want := []string{"lo", "na-test", "othervethx", "otherpeer", linkName("natest", "alive", 0)}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("links are %v, want %v", names, want)
	}
	serveIn(t, alive)
	if _, err := dial(addr); err != nil {
		t.Errorf("the living pod does not answer: %v", err)
	}
	if addrs, err := n.Addrs(bounded(t), "dead"); len(addrs) > 0 || err != nil {
		t.Errorf("the dead pod has %v, %v", addrs, err)
	}
}

func TestRefusals(t *testing.T) {
	n := setUp(t)
	plain := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(plain, nil, 0o600))
	for _, path := range []string{"/nonexistent", plain, "/proc/self/ns/uts", "/proc/thread-self/ns/net"} {
		if _, err := n.Attach(bounded(t), "a", path); !errors.Is(err, ErrNamespace) {
			t.Errorf("attach of %s says %v, want ErrNamespace", path, err)
		}
	}
	if addrs, _ := n.Addrs(bounded(t), "a"); len(addrs) > 0 {
		t.Errorf("a refused pod has %v", addrs)
	}
	if _, err := n.Attach(bounded(t), "", newPod(t)); err == nil {
		t.Error("a pod without UID was attached")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, attachErr := n.Attach(ended, "a", newPod(t))
	for _, err := range []error{attachErr, n.Detach(ended, "a"), n.Setup(ended), n.Sweep(ended, nil), n.Teardown(ended)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	}
}

func TestSetupRefusesARangeInUse(t *testing.T) {
	enterNewNode(t)
	uplink(t, 1500)
	for cidr, overlaps := range map[string]bool{"192.0.2.128/25": true, "192.0.0.0/16": true, "192.0.3.0/24": false} {
		cfg := testConfig(memoryLedger{})
		cfg.PodCIDR = netip.MustParsePrefix(cidr)
		n := open(t, cfg)
		if err := n.Setup(bounded(t)); errors.Is(err, ErrOverlap) != overlaps {
			t.Errorf("setup with %s says %v", cidr, err)
		}
		must(t, n.Teardown(bounded(t)))
	}
}

func TestSetupRefusesAForeignLinkOfItsName(t *testing.T) {
	enterNewNode(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "na-test"
	veth := netlink.NewVeth(attrs)
	veth.PeerName = "peer"
	must(t, netlink.LinkAdd(veth))
	n := open(t, testConfig(memoryLedger{}))
	if err := n.Setup(bounded(t)); err == nil || !strings.Contains(err.Error(), "not a bridge") {
		t.Errorf("setup says %v", err)
	}
}

func TestSetupRepairsAndFollowsTheConfig(t *testing.T) {
	n := setUp(t)
	bridge, err := netlink.LinkByName("na-test")
	must(t, err)
	must(t, netlink.LinkSetDown(bridge))
	must(t, n.deleteTable(bounded(t)))
	cfg := testConfig(memoryLedger{})
	cfg.PodCIDR, cfg.MTU = netip.MustParsePrefix("10.99.0.0/24"), 1300
	moved := open(t, cfg)
	must(t, moved.Setup(bounded(t)))
	bridge, err = netlink.LinkByName("na-test")
	must(t, err)
	addrs, err := netlink.AddrList(bridge, unix.AF_INET)
	must(t, err)
	if len(addrs) != 1 || addrs[0].IP.String() != "10.99.0.1" || bridge.Attrs().MTU != 1300 ||
		bridge.Attrs().Flags&net.FlagUp == 0 || ownTables(t, moved) != 1 {
		t.Errorf("bridge has %v, MTU %d, flags %v", addrs, bridge.Attrs().MTU, bridge.Attrs().Flags)
	}
}

func TestPodOfAnEarlierRangeGetsANewAddress(t *testing.T) {
	enterNewNode(t)
	kept := memoryLedger{}
	n := open(t, testConfig(kept))
	must(t, n.Setup(bounded(t)))
	pod := newPod(t)
	attach(t, n, "a", pod)
	cfg := testConfig(kept)
	cfg.PodCIDR = netip.MustParsePrefix("10.99.0.0/24")
	moved := open(t, cfg)
	must(t, moved.Setup(bounded(t)))
	addr := attach(t, moved, "a", newPod(t))
	if !cfg.PodCIDR.Contains(addr) {
		t.Errorf("the pod has %v, outside %v", addr, cfg.PodCIDR)
	}
}

func TestTwoNodesInOneNamespace(t *testing.T) {
	first := setUp(t)
	cfg := testConfig(memoryLedger{})
	cfg.Bridge, cfg.Prefix = Names(t.TempDir())
	if err := open(t, cfg).Setup(bounded(t)); !errors.Is(err, ErrOverlap) {
		t.Errorf("a second node with the same range says %v", err)
	}
	cfg.PodCIDR = netip.MustParsePrefix("10.245.0.0/24")
	second := open(t, cfg)
	must(t, second.Setup(bounded(t)))
	a, b := newPod(t), newPod(t)
	addr := attach(t, first, "a", a)
	attach(t, second, "a", b)
	must(t, second.Teardown(bounded(t)))
	serveIn(t, a)
	if _, err := dial(addr); err != nil || ownTables(t, first) != 1 {
		t.Errorf("removing one node hurt the other: %v", err)
	}
}

func TestManyPodsAtOnce(t *testing.T) {
	n := setUp(t)
	const pods = 40
	paths := make([]string, pods)
	for i := range paths {
		paths[i] = newPod(t)
	}
	ctx := bounded(t)
	var mu sync.Mutex
	seen := map[netip.Addr]bool{}
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			addrs, err := n.Attach(ctx, "pod"+string(rune('A'+i)), path)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[addrs[0]] {
				t.Errorf("pod %d gets %v, %v", i, addrs, err)
				return
			}
			seen[addrs[0]] = true
		})
	}
	wg.Wait()
	must(t, n.Teardown(ctx))
	if left := linkNames(t); !slices.Equal(left, []string{"lo"}) {
		t.Errorf("left are %v", left)
	}
}

// The same on the machine's own namespace, where the product runs. Names and lock are fixed, so that a run cleans up
// after one that was killed, and runs side by side wait for each other.
func TestRootNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing the network needs root")
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "nodeactor-network-test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer lock.Close()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	l, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer l.Close()
	cfg := Config{Bridge: "na-t00d", Prefix: "nat00d", PodCIDR: netip.MustParsePrefix("10.213.77.0/24"), Ledger: l}
	n := open(t, cfg)
	must(t, n.Teardown(bounded(t)))
	before := linkNames(t)
	must(t, n.Setup(bounded(t)))
	t.Cleanup(func() { n.Teardown(context.Background()) })
	pod := newPod(t)
	addr := attach(t, n, "a", pod)
	serveIn(t, pod)
	if got, err := dial(addr); got != n.Gateway().String() {
		t.Errorf("the pod sees the node as %s (%v)", got, err)
	}
	must(t, n.Teardown(bounded(t)))
	if after := linkNames(t); slices.ContainsFunc(after, n.owns) || slices.Contains(after, cfg.Bridge) {
		t.Errorf("links before %v, after %v", before, after)
	}
}
