package services

import (
	"maps"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// Planner keeps the desired state of one node's table and works out how each change of a Service changes it. It does no
// input or output and is not safe for use in parallel: one actor owns it.
type Planner struct {
	node Node
	// services has the routes that each Service asks for, with slots placed.
	services map[Name]map[Front]Route
	// claims has, sorted by name, the Services that ask for a front; the first has it.
	claims map[Front][]Name
	// picks and hairpins count what leads to a chain and to a backend's address.
	picks    map[Pick]int
	hairpins map[netip.Addr]int
	// adopted are slots of an earlier process that no Service has taken over yet.
	adopted map[Front][]netip.AddrPort
}

// NewPlanner starts with no Services.
func NewPlanner(n Node) *Planner {
	return &Planner{
		node: n, services: map[Name]map[Front]Route{}, claims: map[Front][]Name{},
		picks: map[Pick]int{}, hairpins: map[netip.Addr]int{},
	}
}

// Set takes a Service as it is now, with all its EndpointSlices, and gives what changes. Its cost depends on that Service
// alone. A nil Service, like a headless one, has no routes.
func (p *Planner) Set(name Name, s *v1.Service, parts []*discovery.EndpointSlice) Delta {
	old := p.services[name]
	want := routesOf(p.node, s, parts)
	for f, r := range want {
		if before := p.slotsBefore(name, f); r.Sticky > 0 {
			r.Backends = placeSticky(before, r.Backends)
		} else {
			r.Backends = place(before, r.Backends)
		}
		want[f] = r
	}
	touched := p.touched(old, want)
	before := p.held(touched)
	p.claim(name, old, want)
	if len(want) == 0 {
		delete(p.services, name)
	} else {
		p.services[name] = want
	}
	return p.change(before, p.held(touched))
}

// Remove forgets a Service.
func (p *Planner) Remove(name Name) Delta { return p.Set(name, nil, nil) }

// touched lists the fronts that either side has.
func (p *Planner) touched(old, want map[Front]Route) []Front {
	all := maps.Clone(want)
	maps.Copy(all, old)
	return slices.SortedFunc(maps.Keys(all), compareFronts)
}

// held gives the routes that are in effect for some fronts.
func (p *Planner) held(fronts []Front) map[Front]Route {
	routes := map[Front]Route{}
	for _, f := range fronts {
		if names := p.claims[f]; len(names) > 0 {
			routes[f] = p.services[names[0]][f]
		}
	}
	return routes
}

// claim updates who asks for which front.
func (p *Planner) claim(name Name, old, want map[Front]Route) {
	for f := range old {
		if _, ok := want[f]; !ok {
			p.release(f, name)
		}
	}
	for f := range want {
		names := p.claims[f]
		if at, found := slices.BinarySearchFunc(names, name, compareNames); !found {
			p.claims[f] = slices.Insert(names, at, name)
		}
	}
}

func (p *Planner) release(f Front, name Name) {
	names := slices.DeleteFunc(p.claims[f], func(n Name) bool { return n == name })
	p.claims[f] = names
	if len(names) == 0 {
		delete(p.claims, f)
	}
}

// change works out the delta between two states of the same fronts, and counts the shared parts anew.
func (p *Planner) change(before, after map[Front]Route) Delta {
	d := Delta{Flows: flows(before, after)}
	old, want := allElements(before), allElements(after)
	shared := p.count(before, after)
	d.AddChains, d.RemoveChains = shared.addChains, shared.removeChains
	maps.Copy(old, shared.removeHairpins)
	maps.Copy(want, shared.addHairpins)
	d.Remove, d.Add = between(old, want)
	return d
}

func allElements(routes map[Front]Route) Elements {
	all := Elements{}
	for f, r := range routes {
		maps.Copy(all, elementsOf(f, r))
	}
	return all
}

// flows finds the UDP fronts whose backends changed.
func flows(before, after map[Front]Route) map[Front]Route {
	changed := map[Front]Route{}
	for f, r := range before {
		if now := after[f]; f.Proto == UDP && !slices.Equal(r.Backends, now.Backends) {
			changed[f] = now
		}
	}
	for f, r := range after {
		if _, ok := before[f]; !ok && f.Proto == UDP {
			changed[f] = r
		}
	}
	return changed
}

// Owner tells which Service has a front, and which others ask for it in vain.
func (p *Planner) Owner(f Front) (owner Name, inVain []Name) {
	names := p.claims[f]
	if len(names) == 0 {
		return Name{}, nil
	}
	return names[0], slices.Clone(names[1:])
}

// Routes gives all routes in effect.
func (p *Planner) Routes() map[Front]Route {
	return p.held(slices.Collect(maps.Keys(p.claims)))
}

// Desired gives the complete state of the table.
func (p *Planner) Desired() (Elements, []Pick) {
	all := allElements(p.Routes())
	for addr := range p.hairpins {
		all[hairpin(addr)] = ""
	}
	return all, slices.SortedFunc(maps.Keys(p.picks), comparePicks)
}
