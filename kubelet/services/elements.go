package services

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// The names of the table's sets and maps.
const (
	mapFronts    = "fronts"    // cluster address . protocol . port : verdict
	mapNodePorts = "nodeports" // protocol . port : verdict
	mapBackends  = "backends"  // address . protocol . port . slot : backend address . port
	setHairpins  = "hairpins"  // address . address, of every backend
	setAffinity  = "affinity"  // client . address . protocol . port . slot; filled by packets alone
)

// Chains that verdicts lead to, beside those that a [Pick] names.
const (
	chainReject = "reject"
	verdictDrop = "drop" // a verdict of its own, no chain
)

// Element is the identity of one element: a set of the table and a key, as the kernel has it.
type Element struct{ Set, Key string }

// Elements is the changing part of a table: each element and its value, which is the name of a chain in maps of verdicts,
// bytes in other maps and empty in sets.
type Elements map[Element]string

// key concatenates fields, each filled to four bytes as the kernel's registers are.
func key(fields ...[]byte) string {
	var b []byte
	for _, f := range fields {
		b = append(b, f...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	return string(b)
}

func port(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// slot is in the order of the processor, as the kernel's random numbers are.
func slot(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

func (f Front) fields() [][]byte {
	return [][]byte{f.Addr.AsSlice(), {byte(f.Proto)}, port(f.Port)}
}

func target(b netip.AddrPort) string { return key(b.Addr().AsSlice(), port(b.Port())) }

// dispatch is the element that sends a front's packets on.
func dispatch(f Front) Element {
	if f.IsNodePort() {
		return Element{mapNodePorts, key(f.fields()[1:]...)}
	}
	return Element{mapFronts, key(f.fields()...)}
}

// elementsOf gives the elements of one front.
func elementsOf(f Front, r Route) Elements {
	all := Elements{dispatch(f): verdictOf(f, r)}
	for i, b := range r.Backends {
		all[Element{mapBackends, key(append(f.fields(), slot(i))...)}] = target(b)
	}
	return all
}

// verdictOf names the chain for a front's packets, or a verdict.
func verdictOf(f Front, r Route) string {
	if len(r.Backends) > 0 {
		return pickOf(f, r).Chain()
	}
	if r.Refusal == Drop {
		return verdictDrop
	}
	return chainReject
}

func hairpin(a netip.Addr) Element {
	return Element{setHairpins, key(a.AsSlice(), a.AsSlice())}
}

// Pick is a chain that picks one of Count backends. The chain knows nothing of any Service: all fronts of the same kind
// with as many backends share it.
type Pick struct {
	NodePort   bool
	KeepSource bool
	Count      int
	Sticky     int32
}

func pickOf(f Front, r Route) Pick {
	return Pick{NodePort: f.IsNodePort(), KeepSource: r.KeepSource, Count: len(r.Backends), Sticky: r.Sticky}
}

// Chain is the name of the chain; it says everything that is in it.
func (p Pick) Chain() string {
	kind := "cluster"
	if p.NodePort {
		kind = "node"
	}
	if p.KeepSource {
		kind = "local"
	}
	name := fmt.Sprintf("pick-%s-%d", kind, p.Count)
	if p.Sticky > 0 {
		name += fmt.Sprintf("-sticky-%d", p.Sticky)
	}
	return name
}
