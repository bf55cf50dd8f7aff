package network

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAllocatorGivesEveryAddressOnce(t *testing.T) {
	a := newAllocator(netip.MustParsePrefix("10.1.2.8/29"))
	taken := map[netip.Addr]bool{}
	var got []string
	for {
		addr, ok := a.next(func(x netip.Addr) bool { return taken[x] })
		if !ok {
			break
		}
		taken[addr] = true
		got = append(got, addr.String())
	}
	want := []string{"10.1.2.10", "10.1.2.11", "10.1.2.12", "10.1.2.13", "10.1.2.14"}
	if !slices.Equal(got, want) {
		t.Errorf("allocator gives %v, want %v", got, want)
	}
}

func TestReleasedAddressComesLast(t *testing.T) {
	a := newAllocator(netip.MustParsePrefix("10.1.2.0/29"))
	taken := map[netip.Addr]bool{}
	next := func() netip.Addr {
		addr, _ := a.next(func(x netip.Addr) bool { return taken[x] })
		taken[addr] = true
		return addr
	}
	first := next()
	delete(taken, first)
	for range 4 {
		if addr := next(); addr == first {
			t.Fatalf("%v was given again at once", addr)
		}
	}
	if addr := next(); addr != first {
		t.Errorf("the last free address is %v, want %v", addr, first)
	}
}

func TestAllocatorProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(24, maxCIDRBits).Draw(t, "bits")
		raw := rapid.Uint32().Draw(t, "base")
		base := netip.AddrFrom4([4]byte{byte(raw >> 24), byte(raw >> 16), byte(raw >> 8), byte(raw)})
		a := newAllocator(netip.PrefixFrom(base, bits))
		room := 1<<(32-bits) - 3
		taken := map[netip.Addr]bool{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(taken) > 0 && rapid.Bool().Draw(t, "release") {
				for addr := range taken {
					delete(taken, addr)
					break
				}
				continue
			}
			addr, ok := a.next(func(x netip.Addr) bool { return taken[x] })
			if ok != (len(taken) < room) {
				t.Fatalf("with %d of %d taken the allocator says %v", len(taken), room, ok)
			}
			if ok && (taken[addr] || !a.usable(addr)) {
				t.Fatalf("allocator gives %v, which is taken or not usable", addr)
			}
			if ok {
				taken[addr] = true
			}
		}
	})
}

func TestNames(t *testing.T) {
	bridge, prefix := Names(DefaultDataDir + "/")
	if bridge != "nodeactor0" || prefix != "na" {
		t.Errorf("names of the default directory are %q, %q", bridge, prefix)
	}
	one, onePrefix := Names("/tmp/one")
	two, twoPrefix := Names("/tmp/two")
	if one == two || onePrefix == twoPrefix || len(one) > maxLinkName || len(onePrefix) > maxPrefix {
		t.Errorf("names are %q, %q and %q, %q", one, onePrefix, two, twoPrefix)
	}
	plain := &Network{cfg: Config{Prefix: prefix}}
	if plain.owns(linkName(onePrefix, "uid", 0)) || !plain.owns(linkName(prefix, "uid", 0)) {
		t.Error("the default node takes another node's links for its own")
	}
	if a, b := linkName(onePrefix, "uid", 0), linkName(onePrefix, "uid", 1); a == b || len(a) != maxLinkName {
		t.Errorf("link names are %q and %q", a, b)
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	good := Config{Bridge: "b", Prefix: "p", PodCIDR: netip.MustParsePrefix("10.0.0.0/24"), Ledger: memoryLedger{}}
	for name, spoil := range map[string]func(*Config){
		"no bridge":      func(c *Config) { c.Bridge = "" },
		"long bridge":    func(c *Config) { c.Bridge = "sixteen-letters!" },
		"no prefix":      func(c *Config) { c.Prefix = "" },
		"long prefix":    func(c *Config) { c.Prefix = "ninechars" },
		"odd prefix":     func(c *Config) { c.Prefix = "a-b" },
		"no range":       func(c *Config) { c.PodCIDR = netip.Prefix{} },
		"IPv6 range":     func(c *Config) { c.PodCIDR = netip.MustParsePrefix("fd00::/64") },
		"tiny range":     func(c *Config) { c.PodCIDR = netip.MustParsePrefix("10.0.0.0/31") },
		"huge range":     func(c *Config) { c.PodCIDR = netip.MustParsePrefix("0.0.0.0/0") },
		"negative MTU":   func(c *Config) { c.MTU = -1 },
		"no ledger":      func(c *Config) { c.Ledger = nil },
		"invalid direct": func(c *Config) { c.Direct = []netip.Prefix{{}} },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := Open(cfg); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
