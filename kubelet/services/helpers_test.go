package services

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/kubelet/network"
	"github.com/nodeactor/nodeactor/test/netspace"
)

const thisNode = "here"

var enterNewNode, newNamespace = netspace.Enter, netspace.New

// world is a node in a network namespace of its own, with pods, and somebody outside.
type world struct {
	t       testing.TB
	net     *network.Network
	table   *Table
	plan    *Planner
	outside string
}

var (
	podRange    = netip.MustParsePrefix("10.244.0.0/16")
	linkRange   = netip.MustParsePrefix("10.244.0.0/24")
	nodeAddr    = netip.MustParseAddr("192.168.9.1")
	outsideAddr = netip.MustParseAddr("192.168.9.2")
)

// newWorld puts the test's thread into a new namespace; thread and namespace end with the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	enterNewNode(t)
	w := &world{t: t, plan: NewPlanner(Node{Name: thisNode}), outside: newNamespace(t)}
	w.connectOutside()
	var err error
	w.net, err = network.Open(network.Config{Bridge: "na-test", Prefix: "natest", PodCIDR: linkRange, Ledger: netspace.Ledger{}})
	w.must(err)
	t.Cleanup(func() { w.net.Close() })
	w.must(w.net.Setup(bounded(t)))
	w.table = openTable(t)
	_, err = w.table.Resync(bounded(t), Elements{}, nil)
	w.must(err)
	return w
}

func openTable(t testing.TB) *Table {
	t.Helper()
	table, err := Open(Config{Table: "natest_services", PodRange: podRange, LinkRange: linkRange})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// in runs f in the namespace at path, on a thread that ends with it.
func in[T any](t testing.TB, path string, f func() (T, error)) (T, error) {
	t.Helper()
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends here
		var r result
		ns, err := netns.GetFromPath(path)
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if r.err = err; err == nil {
			r.value, r.err = f()
		}
		done <- r
	}()
	r := <-done
	return r.value, r.err
}

// connectOutside joins node and outside by a veth pair; the node's default route goes out there.
func (w *world) connectOutside() {
	w.t.Helper()
	w.must(bringUp("lo", netip.Prefix{}))
	ns, err := netns.GetFromPath(w.outside)
	w.must(err)
	defer ns.Close()
	w.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "far0", PeerNamespace: netlink.NsFd(ns)}))
	w.must(bringUp("up0", netip.PrefixFrom(nodeAddr, 24)))
	w.must(netlink.RouteAdd(&netlink.Route{Gw: outsideAddr.AsSlice()}))
	_, err = in(w.t, w.outside, func() (int, error) {
		if err := bringUp("far0", netip.PrefixFrom(outsideAddr, 24)); err != nil {
			return 0, err
		}
		return 0, netlink.RouteAdd(&netlink.Route{Gw: nodeAddr.AsSlice()})
	})
	w.must(err)
}

func bringUp(name string, addr netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if addr.IsValid() {
		ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32)}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ip}); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// pod is a namespace with an address that answers on port 80 with its name and the client's address.
type pod struct {
	name, path string
	addr       netip.Addr
}

func (w *world) pod(name string) pod {
	w.t.Helper()
	p := pod{name: name, path: newNamespace(w.t)}
	addrs, err := w.net.Attach(bounded(w.t), name, p.path)
	w.must(err)
	p.addr = addrs[0]
	stop, err := in(w.t, p.path, func() (func(), error) { return serve(name) })
	w.must(err)
	w.t.Cleanup(stop)
	return p
}

// serve answers TCP and UDP on port 80 of the current namespace.
func serve(name string) (stop func(), err error) {
	l, err := net.Listen("tcp4", ":80")
	if err != nil {
		return nil, err
	}
	u, err := net.ListenPacket("udp4", ":80")
	if err != nil {
		l.Close()
		return nil, err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, "%s %s\n", name, conn.RemoteAddr().(*net.TCPAddr).IP)
			conn.Close()
		}
	}()
	go func() {
		for {
			_, from, err := u.ReadFrom(make([]byte, 100))
			if err != nil {
				return
			}
			fmt.Fprintf(packetWriter{u, from}, "%s %s\n", name, from.(*net.UDPAddr).IP)
		}
	}()
	return func() { l.Close(); u.Close() }, nil
}

type packetWriter struct {
	net.PacketConn
	to net.Addr
}

func (p packetWriter) Write(b []byte) (int, error) { return p.WriteTo(b, p.to) }

// ask dials and returns who answered and as whom it sees the caller.
func ask(proto, at string) ([2]string, error) {
	conn, err := net.DialTimeout(proto+"4", at, 2*time.Second)
	if err != nil {
		return [2]string{}, err
	}
	defer conn.Close()
	return answer(conn)
}

func answer(conn net.Conn) ([2]string, error) {
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, ok := conn.(*net.UDPConn); ok {
		if _, err := conn.Write([]byte("?")); err != nil {
			return [2]string{}, err
		}
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	who, seen, _ := strings.Cut(strings.TrimSpace(line), " ")
	return [2]string{who, seen}, err
}

// from asks from the namespace at path; "" is the node itself.
func (w *world) from(path, proto, at string) (who, seen string) {
	w.t.Helper()
	who, seen, err := w.try(path, proto, at)
	if err != nil {
		w.t.Fatalf("%s %s: %v", proto, at, err)
	}
	return who, seen
}

func (w *world) try(path, proto, at string) (who, seen string, err error) {
	if path == "" {
		got, err := ask(proto, at)
		return got[0], got[1], err
	}
	got, err := in(w.t, path, func() ([2]string, error) { return ask(proto, at) })
	return got[0], got[1], err
}

// set plans and applies a Service.
func (w *world) set(s *v1.Service, parts ...*discovery.EndpointSlice) Delta {
	w.t.Helper()
	d := w.plan.Set(Name{s.Namespace, s.Name}, s, parts)
	w.must(w.table.Apply(bounded(w.t), d))
	return d
}

func ptr[T any](v T) *T { return &v }

// service has port 80 named http by TCP and, with the same number, dns by UDP.
func service(name, ip string, more ...func(*v1.Service)) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeClusterIP, ClusterIP: ip,
		Ports: []v1.ServicePort{{Name: "http", Port: 80}, {Name: "dns", Port: 80, Protocol: v1.ProtocolUDP}},
	}}
	for _, f := range more {
		f(s)
	}
	return s
}

func nodePort(n int32) func(*v1.Service) {
	return func(s *v1.Service) {
		s.Spec.Type = v1.ServiceTypeNodePort
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = n
		}
	}
}

func stickyFor(seconds int32) func(*v1.Service) {
	return func(s *v1.Service) {
		s.Spec.SessionAffinity = v1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

func externalLocal(s *v1.Service) {
	s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
}

func internalLocal(s *v1.Service) {
	s.Spec.InternalTrafficPolicy = ptr(v1.ServiceInternalTrafficPolicyLocal)
}

// ready80 is an endpoint on port 80 of this node.
func ready80(addr string) discovery.Endpoint {
	return discovery.Endpoint{Addresses: []string{addr}, NodeName: ptr(thisNode), Conditions: discovery.EndpointConditions{Ready: ptr(true)}}
}

func elsewhere(addr string) discovery.Endpoint {
	e := ready80(addr)
	e.NodeName = ptr("there")
	return e
}

func terminating(addr string) discovery.Endpoint {
	e := ready80(addr)
	e.Conditions = discovery.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)}
	return e
}

func unready(addr string) discovery.Endpoint {
	e := ready80(addr)
	e.Conditions.Ready = ptr(false)
	return e
}

// slice has endpoints with both ports of service at 80.
func slice(all ...discovery.Endpoint) *discovery.EndpointSlice {
	return &discovery.EndpointSlice{AddressType: discovery.AddressTypeIPv4, Endpoints: all, Ports: []discovery.EndpointPort{
		{Name: ptr("http"), Port: ptr[int32](80), Protocol: ptr(v1.ProtocolTCP)},
		{Name: ptr("dns"), Port: ptr[int32](80), Protocol: ptr(v1.ProtocolUDP)},
	}}
}

func podSlice(pods ...pod) *discovery.EndpointSlice {
	var all []discovery.Endpoint
	for _, p := range pods {
		all = append(all, ready80(p.addr.String()))
	}
	return slice(all...)
}

type discoverySlice = discovery.EndpointSlice
