package services

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

const cluster80 = "10.96.7.7:80"

// spread asks n times and counts who answers.
func (w *world) spread(n int, path, proto, at string) map[string]int {
	w.t.Helper()
	counts := map[string]int{}
	for range n {
		who, _ := w.from(path, proto, at)
		counts[who]++
	}
	return counts
}

func TestClusterAddressReachesEveryBackendFromEverywhere(t *testing.T) {
	w := newWorld(t)
	a, b, client := w.pod("a"), w.pod("b"), w.pod("client")
	w.set(service("web", "10.96.7.7"), podSlice(a, b))
	for place, path := range map[string]string{"a pod": client.path, "the node": "", "outside": w.outside} {
		for _, proto := range []string{"tcp", "udp"} {
			if got := w.spread(40, path, proto, cluster80); got["a"] == 0 || got["b"] == 0 {
				t.Errorf("from %s by %s: %v", place, proto, got)
			}
		}
	}
}

func TestBackendReachesItselfThroughItsService(t *testing.T) {
	w := newWorld(t)
	a := w.pod("a")
	w.set(service("web", "10.96.7.7"), podSlice(a))
	for _, proto := range []string{"tcp", "udp"} {
		if who, seen := w.from(a.path, proto, cluster80); who != "a" || seen != w.net.Gateway().String() {
			t.Errorf("by %s: %s answered and saw %s", proto, who, seen)
		}
	}
}

func TestServiceWithoutEndpointsRefusesAtOnce(t *testing.T) {
	w := newWorld(t)
	client := w.pod("client")
	w.set(service("web", "10.96.7.7", nodePort(30080)), slice())
	w.try(client.path, "tcp", w.net.Gateway().String()+":9") // a new link may lose its first packet
	for _, c := range []struct{ path, at string }{
		{client.path, cluster80}, {"", cluster80}, {w.outside, cluster80}, {w.outside, nodeAddr.String() + ":30080"},
	} {
		for _, proto := range []string{"tcp", "udp"} {
			begun := time.Now()
			_, _, err := w.try(c.path, proto, c.at)
			refused := errors.Is(err, syscall.ECONNREFUSED) || c.path == "" && errors.Is(err, syscall.EPERM) // what a send on the node itself says
			if !refused || time.Since(begun) > time.Second {
				t.Errorf("%s %s from %q: %v after %v", proto, c.at, c.path, err, time.Since(begun))
			}
		}
	}
}

func TestNodePortHidesTheClientUnlessLocal(t *testing.T) {
	w := newWorld(t)
	a := w.pod("a")
	at := nodeAddr.String() + ":30080"
	w.set(service("web", "10.96.7.7", nodePort(30080)), podSlice(a))
	for _, proto := range []string{"tcp", "udp"} {
		if who, seen := w.from(w.outside, proto, at); who != "a" || seen != w.net.Gateway().String() {
			t.Errorf("Cluster by %s: %s answered and saw %s", proto, who, seen)
		}
	}
	w.set(service("web", "10.96.7.7", nodePort(30080), externalLocal), podSlice(a))
	if who, seen := w.from(w.outside, "tcp", at); who != "a" || seen != outsideAddr.String() {
		t.Errorf("Local: %s answered and saw %s", who, seen)
	}
	if who, _ := w.from("", "tcp", at); who != "a" {
		t.Errorf("from the node: %s", who)
	}
}

func TestLocalPolicyIsSilentWhereNoEndpointIs(t *testing.T) {
	w := newWorld(t)
	w.set(service("web", "10.96.7.7", nodePort(30080), externalLocal), slice(elsewhere("10.244.1.9")))
	_, _, err := w.try(w.outside, "tcp", nodeAddr.String()+":30080")
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a time-out", err)
	}
}

func TestAffinityHoldsUntilTheTimeoutOrTheBackendGoes(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.pod("a"), w.pod("b"), w.pod("c")
	client, other := w.pod("client"), w.pod("other")
	pods := map[string]pod{"a": a, "b": b, "c": c}
	w.set(service("web", "10.96.7.7", nodePort(30080), stickyFor(3600)), podSlice(a, b, c))
	for _, place := range []struct{ path, at string }{
		{client.path, cluster80}, {other.path, cluster80}, {w.outside, nodeAddr.String() + ":30080"},
	} {
		if got := w.spread(20, place.path, "tcp", place.at); len(got) != 1 {
			t.Errorf("%s: one client met %v", place.at, got)
		}
	}
	first, _ := w.from(client.path, "tcp", cluster80)
	delete(pods, first)
	var left []pod
	for _, p := range pods {
		left = append(left, p)
	}
	w.set(service("web", "10.96.7.7", nodePort(30080), stickyFor(3600)), podSlice(left...))
	if got := w.spread(20, client.path, "tcp", cluster80); len(got) != 1 || got[first] != 0 {
		t.Errorf("after %s was gone one client met %v", first, got)
	}
}

// The API server is such a backend: a program of the node, with the node's address.
func TestProgramOfTheNodeIsABackend(t *testing.T) {
	w := newWorld(t)
	client := w.pod("client")
	stop, err := serve("node")
	w.must(err)
	defer stop()
	w.set(service("kubernetes", "10.96.7.7"), slice(ready80(nodeAddr.String())))
	for place, path := range map[string]string{"a pod": client.path, "the node": ""} {
		who, seen := w.from(path, "tcp", cluster80)
		if who != "node" {
			t.Errorf("from %s: %q answered", place, who)
		}
		if place == "a pod" && seen != client.addr.String() {
			t.Errorf("the pod is seen as %s", seen)
		}
	}
}

func TestClientsBeyondTheLimitAreServed(t *testing.T) {
	w := newWorld(t)
	a, first, second := w.pod("a"), w.pod("first"), w.pod("second")
	w.table.cfg.Clients = 1
	w.must(w.table.rebuild(bounded(t), Elements{}, nil))
	w.set(service("web", "10.96.7.7", stickyFor(3600)), podSlice(a))
	for _, p := range []pod{first, second, first, second} {
		if who, _ := w.from(p.path, "tcp", cluster80); who != "a" {
			t.Errorf("%s met %q", p.name, who)
		}
	}
}

func TestAffinityEnds(t *testing.T) {
	w := newWorld(t)
	a, b, client := w.pod("a"), w.pod("b"), w.pod("client")
	w.set(service("web", "10.96.7.7", stickyFor(1)), podSlice(a, b))
	met := map[string]bool{}
	for begun := time.Now(); len(met) < 2 && time.Since(begun) < 25*time.Second; time.Sleep(1100 * time.Millisecond) {
		who, _ := w.from(client.path, "tcp", cluster80)
		met[who] = true
	}
	if len(met) < 2 {
		t.Error("the client stayed with one backend although each pause was longer than its affinity")
	}
}

func TestConversationLeavesARemovedBackend(t *testing.T) {
	w := newWorld(t)
	a, b, client := w.pod("a"), w.pod("b"), w.pod("client")
	w.set(service("dns", "10.96.7.7"), podSlice(a))
	conn, err := in(t, client.path, func() (net.Conn, error) { return net.Dial("udp4", cluster80) })
	w.must(err)
	defer conn.Close()
	if got, err := answer(conn); err != nil || got[0] != "a" {
		t.Fatalf("%v %v", got, err)
	}
	d := w.set(service("dns", "10.96.7.7"), podSlice(b))
	n, err := w.table.ForgetFlows(d.Flows)
	if err != nil || n != 1 {
		t.Fatalf("forgot %d conversations: %v", n, err)
	}
	if got, err := answer(conn); err != nil || got[0] != "b" {
		t.Errorf("the same socket reaches %v: %v", got, err)
	}
}

func TestConnectionSurvivesAnUpdateAndARebuild(t *testing.T) {
	w := newWorld(t)
	a, b, client := w.pod("a"), w.pod("b"), w.pod("client")
	l, err := in(t, a.path, func() (net.Listener, error) { return net.Listen("tcp4", ":81") })
	w.must(err)
	defer l.Close()
	long := service("web", "10.96.7.7", func(s *v1.Service) { s.Spec.Ports[0].Port = 81 })
	part := podSlice(a)
	part.Ports[0].Port = ptr[int32](81)
	w.set(long, part)
	conn, err := in(t, client.path, func() (net.Conn, error) { return net.DialTimeout("tcp4", "10.96.7.7:81", 2*time.Second) })
	w.must(err)
	defer conn.Close()
	far, err := l.Accept()
	w.must(err)
	defer far.Close()
	w.set(long, podSlice(b))
	elements, picks := w.plan.Desired()
	w.must(w.table.rebuild(bounded(t), elements, picks))
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := conn.Write([]byte("still there")); err != nil {
		t.Fatal(err)
	}
	far.SetDeadline(time.Now().Add(2 * time.Second))
	got := make([]byte, 100)
	if n, err := far.Read(got); err != nil || string(got[:n]) != "still there" {
		t.Errorf("%q %v", got[:n], err)
	}
}
