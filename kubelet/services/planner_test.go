package services

import (
	"fmt"
	"maps"
	"math/rand"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"

	"github.com/nodeactor/nodeactor/test/golden"
)

// text writes an element the way the nft tool would.
func (e Element) text(value string) string {
	var words []string
	raw := []byte(e.Key)
	for len(raw) > 0 {
		words = append(words, fmt.Sprintf("%x", raw[:4]))
		raw = raw[4:]
	}
	line := e.Set + " " + readable(e.Set, words)
	switch {
	case e.Set == mapBackends && value != "":
		at := []byte(value)
		line += fmt.Sprintf(" : %d.%d.%d.%d:%d", at[0], at[1], at[2], at[3], int(at[4])<<8|int(at[5]))
	case value != "":
		line += " : " + value
	}
	return line
}

// readable turns the fields of a key into addresses and numbers.
func readable(set string, words []string) string {
	kinds := map[string]string{mapFronts: "apn", mapNodePorts: "pn", mapBackends: "apns", setHairpins: "aa"}[set]
	out := make([]string, len(words))
	for i, w := range words {
		var a, b, c, d byte
		fmt.Sscanf(w, "%02x%02x%02x%02x", &a, &b, &c, &d)
		switch kinds[i] {
		case 'a':
			out[i] = fmt.Sprintf("%d.%d.%d.%d", a, b, c, d)
		case 'p':
			out[i] = Proto(a).String()
		case 'n':
			out[i] = fmt.Sprint(int(a)<<8 | int(b))
		case 's':
			out[i] = fmt.Sprint("#", max(a, d)) // whichever order the processor has
		}
	}
	return strings.Join(out, " . ")
}

func (d Delta) text() string {
	var lines []string
	for _, p := range d.AddChains {
		lines = append(lines, "+ chain "+p.Chain())
	}
	for _, e := range d.Remove {
		lines = append(lines, "- "+e.text(""))
	}
	for _, e := range d.Add.sorted() {
		lines = append(lines, "+ "+e.text(d.Add[e]))
	}
	for _, p := range d.RemoveChains {
		lines = append(lines, "- chain "+p.Chain())
	}
	for _, f := range slices.SortedFunc(maps.Keys(d.Flows), compareFronts) {
		lines = append(lines, "~ forget conversations of "+f.String())
	}
	if len(lines) == 0 {
		return "  nothing\n"
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// step is one event of a transcript.
type step struct {
	what    string
	service *v1.Service
	parts   []*discovery.EndpointSlice
}

func TestTranscripts(t *testing.T) {
	for name, steps := range transcripts() {
		t.Run(name, func(t *testing.T) {
			p := NewPlanner(Node{Name: thisNode})
			var out strings.Builder
			for _, s := range steps {
				d := p.Set(Name{s.service.Namespace, s.service.Name}, s.service, s.parts)
				fmt.Fprintf(&out, "%s\n%s", s.what, d.text())
			}
			golden.Check(t, "testdata/"+name+".txt", []byte(out.String()))
		})
	}
}

func parts(all ...*discovery.EndpointSlice) []*discovery.EndpointSlice { return all }

func tcpOnly(s *v1.Service) { s.Spec.Ports = s.Spec.Ports[:1] }

func transcripts() map[string][]step {
	web := func(more ...func(*v1.Service)) *v1.Service {
		return service("web", "10.96.0.1", append([]func(*v1.Service){tcpOnly}, more...)...)
	}
	a, b, c := ready80("10.244.0.2"), ready80("10.244.0.3"), ready80("10.244.0.4")
	headless := service("web", v1.ClusterIPNone)
	external := web(func(s *v1.Service) { s.Spec.Type = v1.ServiceTypeExternalName })
	others := web(func(s *v1.Service) { s.Labels = map[string]string{proxyNameLabel: "mesh"} })
	return map[string][]step{
		"life": {
			{"a service without endpoints", web(), nil},
			{"its first endpoint", web(), parts(slice(a))},
			{"two more, in two slices that overlap", web(), parts(slice(a, b), slice(b, c))},
			{"nothing new", web(), parts(slice(c, b, a))},
			{"the first is gone: the last takes its slot", web(), parts(slice(b, c))},
			{"one is replaced", web(), parts(slice(b, a))},
			{"the service becomes headless", headless, parts(slice(a))},
		},
		"udp": {
			{"both protocols on one port", service("dns", "10.96.0.10"), parts(slice(a, b))},
			{"one endpoint moves", service("dns", "10.96.0.10"), parts(slice(a, c))},
		},
		"terminating": {
			{"one ready, one leaving, one not ready", web(), parts(slice(a, terminating("10.244.0.3"), unready("10.244.0.4")))},
			{"nobody is ready: those that leave still serve", web(), parts(slice(terminating("10.244.0.3"), unready("10.244.0.4")))},
			{"nobody serves", web(), parts(slice(unready("10.244.0.4")))},
		},
		"policies": {
			{"a node port with the policy Local, one endpoint here and one elsewhere", web(nodePort(30080), externalLocal), parts(slice(a, elsewhere("10.244.1.9")))},
			{"the endpoint here is gone: the node port is silent", web(nodePort(30080), externalLocal), parts(slice(elsewhere("10.244.1.9")))},
			{"the internal policy is Local, too", web(nodePort(30080), externalLocal, internalLocal), parts(slice(a, elsewhere("10.244.1.9")))},
			{"no endpoint at all", web(nodePort(30080), externalLocal, internalLocal), nil},
		},
		"sticky": {
			{"affinity of a minute", web(stickyFor(60)), parts(slice(a, b))},
			{"one endpoint is replaced", web(stickyFor(60)), parts(slice(a, c))},
			{"a third endpoint", web(stickyFor(60)), parts(slice(a, b, c))},
			{"the first is gone: its clients share another's", web(stickyFor(60)), parts(slice(b, c))},
			{"the last is gone", web(stickyFor(60)), parts(slice(c))},
			{"without affinity", web(), parts(slice(a, c))},
		},
		"ignored": {
			{"headless", headless, parts(slice(a))},
			{"external name", external, parts(slice(a))},
			{"another proxy's", others, parts(slice(a))},
		},
		"contested": {
			{"a node port", web(nodePort(30080)), parts(slice(a))},
			{"a later name asks for the same", service("zebra", "10.96.0.9", tcpOnly, nodePort(30080)), parts(slice(b))},
			{"the first lets it go", web(), parts(slice(a))},
		},
	}
}

func TestOneEndpointOfManyTouchesItsServiceAlone(t *testing.T) {
	p := NewPlanner(Node{Name: thisNode})
	many(p)
	s, part := manyService(500, 1)
	d := p.Set(Name{s.Namespace, s.Name}, s, part)
	if len(d.AddChains)+len(d.RemoveChains) != 0 {
		t.Errorf("chains changed:\n%s", d.text())
	}
	own := dispatch(Front{clusterAddr(s), TCP, 80}).Key
	for _, e := range append(d.Remove, d.Add.sorted()...) {
		if e.Set != setHairpins && !strings.HasPrefix(e.Key, own) {
			t.Errorf("an element of another Service: %s", e.text(""))
		}
	}
	if len(d.Remove) > 2 || len(d.Add) > 2 { // the slot and the address of the endpoint
		t.Errorf("too much changes:\n%s", d.text())
	}
	if again := p.Set(Name{s.Namespace, s.Name}, s, part); !again.Empty() {
		t.Errorf("the same again changes:\n%s", again.text())
	}
}

func TestContestedFrontHasAnOwner(t *testing.T) {
	p := NewPlanner(Node{Name: thisNode})
	for _, name := range []string{"b", "c", "a"} {
		s := service(name, "10.96.0.1")
		p.Set(Name{s.Namespace, s.Name}, s, nil)
	}
	owner, inVain := p.Owner(Front{netip.MustParseAddr("10.96.0.1"), TCP, 80})
	if owner.String() != "shop/a" || fmt.Sprint(inVain) != "[shop/b shop/c]" {
		t.Errorf("owner %v, in vain %v", owner, inVain)
	}
}

// applied is what a table holds after a delta; it refuses what the kernel would refuse.
func applied(table Elements, chains map[string]bool, d Delta) error {
	for _, p := range d.AddChains {
		if chains[p.Chain()] {
			return fmt.Errorf("chain %s is added twice", p.Chain())
		}
		chains[p.Chain()] = true
	}
	for _, e := range d.Remove {
		if _, ok := table[e]; !ok {
			return fmt.Errorf("removed but not there: %s", e.text(""))
		}
		delete(table, e)
	}
	for e, value := range d.Add {
		if _, ok := table[e]; ok {
			return fmt.Errorf("added but there: %s", e.text(value))
		}
		table[e] = value
	}
	for _, p := range d.RemoveChains {
		if !chains[p.Chain()] {
			return fmt.Errorf("chain %s is removed twice", p.Chain())
		}
		delete(chains, p.Chain())
	}
	return dangling(table, chains)
}

// dangling finds verdicts that lead to no chain, and chains nothing leads to.
func dangling(table Elements, chains map[string]bool) error {
	used := map[string]bool{}
	for e, value := range table {
		if e.Set != mapFronts && e.Set != mapNodePorts || value == chainReject || value == verdictDrop {
			continue
		}
		if !chains[value] {
			return fmt.Errorf("leads nowhere: %s", e.text(value))
		}
		used[value] = true
	}
	if len(used) != len(chains) {
		return fmt.Errorf("%d chains, %d of them used", len(chains), len(used))
	}
	return nil
}

// FuzzDeltas plays random changes of a few Services: the deltas must add up to what is desired, whichever way led there.
func FuzzDeltas(f *testing.F) {
	for seed := range int64(8) {
		f.Add(seed, uint8(60))
	}
	f.Fuzz(func(t *testing.T, seed int64, n uint8) {
		random := rand.New(rand.NewSource(seed))
		p, last := NewPlanner(Node{Name: thisNode}), map[Name]step{}
		table, chains := Elements{}, map[string]bool{}
		for range n {
			s := randomStep(random)
			name := Name{"shop", s.what}
			last[name] = s
			if err := applied(table, chains, p.Set(name, s.service, s.parts)); err != nil {
				t.Fatal(err)
			}
		}
		if want, _ := p.Desired(); !maps.Equal(table, want) {
			t.Fatal("the deltas do not add up to the desired state")
		}
		sameRoutes(t, p, last)
		for name := range last {
			if err := applied(table, chains, p.Remove(name)); err != nil {
				t.Fatal(err)
			}
		}
		if len(table)+len(chains)+len(p.claims)+len(p.picks)+len(p.hairpins)+len(p.services) != 0 {
			t.Fatal("something is left when all Services are gone")
		}
	})
}

// sameRoutes compares with a planner that saw only the last state of each Service; slots may differ.
func sameRoutes(t *testing.T, p *Planner, last map[Name]step) {
	t.Helper()
	fresh := NewPlanner(Node{Name: thisNode})
	for name, s := range last {
		fresh.Set(name, s.service, s.parts)
	}
	sorted := func(routes map[Front]Route) string {
		var lines []string
		for _, f := range slices.SortedFunc(maps.Keys(routes), compareFronts) {
			r := routes[f]
			r.Backends = slices.Compact(slices.SortedFunc(slices.Values(r.Backends), netip.AddrPort.Compare))
			lines = append(lines, fmt.Sprintf("%v %v", f, r))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := sorted(p.Routes()), sorted(fresh.Routes()); got != want {
		t.Fatalf("after changes\n%s\nat once\n%s", got, want)
	}
}

func randomStep(random *rand.Rand) step {
	which := random.Intn(4)
	s := service(fmt.Sprint("s", which), fmt.Sprintf("10.96.0.%d", random.Intn(5)))
	mutations := []func(*v1.Service){
		nodePort(30000 + int32(random.Intn(3))), externalLocal, internalLocal, stickyFor(int32(random.Intn(3))), tcpOnly,
		func(s *v1.Service) { s.Spec.ClusterIP = v1.ClusterIPNone },
	}
	for _, m := range mutations {
		if random.Intn(3) == 0 {
			m(s)
		}
	}
	if random.Intn(8) == 0 {
		s = nil
	}
	kinds := []func(string) discovery.Endpoint{ready80, ready80, elsewhere, terminating, unready}
	var all []*discovery.EndpointSlice
	for range random.Intn(3) {
		part := slice()
		for range random.Intn(5) {
			part.Endpoints = append(part.Endpoints, kinds[random.Intn(len(kinds))](fmt.Sprintf("10.244.0.%d", random.Intn(8))))
		}
		all = append(all, part)
	}
	return step{fmt.Sprint("s", which), s, all}
}

// FuzzEndpoints takes whatever an API could hand out: nothing may panic, and no route may be made of nonsense.
func FuzzEndpoints(f *testing.F) {
	f.Add("10.96.0.1", "10.244.0.2", int32(80), int32(8080), "http")
	f.Add("None", "", int32(0), int32(-1), "")
	f.Add("fd00::1", "fd00::2", int32(70000), int32(70000), "x")
	f.Add("0.0.0.0", "0.0.0.0", int32(1), int32(1), "")
	f.Fuzz(func(t *testing.T, ip, endpoint string, front, back int32, name string) {
		s := service("web", ip, nodePort(front))
		s.Spec.Ports[0].Port = front
		s.Spec.Ports[0].Name = name
		part := slice(ready80(endpoint), discovery.Endpoint{})
		part.Ports = append(part.Ports, discovery.EndpointPort{}, discovery.EndpointPort{Name: &name, Port: &back})
		for f, r := range routesOf(Node{Name: thisNode}, s, parts(part)) {
			if f.Port == 0 || !f.Addr.Is4() || (f.Addr.IsUnspecified() != f.IsNodePort()) {
				t.Errorf("front %v", f)
			}
			for _, b := range r.Backends {
				if b.Port() == 0 || !b.Addr().Is4() {
					t.Errorf("backend %v of %v", b, f)
				}
			}
		}
	})
}
