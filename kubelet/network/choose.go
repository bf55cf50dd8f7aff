package network

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	rangeBucket = "network-range" // of the ledger
	rangeKey    = "pods"
	ranges      = 256 // /24 ranges in the pool
)

// rangePool is what ChooseCIDR takes pod ranges from.
var rangePool = netip.MustParsePrefix("10.244.0.0/16")

// ChooseCIDR gives the pod range of a node that none was configured for: the range it had before, or else a free /24 of
// 10.244.0.0/16, which is written into the ledger before it is returned. The node with the default data directory starts
// looking at 10.244.0.0/24, others where the name of theirs leads, so that nodes starting on one machine at once find
// different ones. Call it in the node's network namespace. ErrFull says that every range is routed by somebody else.
func ChooseCIDR(dataDir string, l Ledger) (netip.Prefix, error) {
	var chosen netip.Prefix
	err := l.Each(rangeBucket, func(_ string, raw []byte) error { return json.Unmarshal(raw, &chosen) })
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("cannot read the node's pod range: %w", err)
	}
	if chosen.IsValid() {
		return chosen, nil
	}
	if chosen, err = freeRange(dataDir); err != nil {
		return netip.Prefix{}, fmt.Errorf("cannot choose a pod range: %w", err)
	}
	if err := l.Put(rangeBucket, rangeKey, chosen); err != nil {
		return netip.Prefix{}, fmt.Errorf("cannot record the pod range %v: %w", chosen, err)
	}
	return chosen, nil
}

// freeRange looks for a range that no link but the node's own bridge routes.
func freeRange(dataDir string) (netip.Prefix, error) {
	ns, err := netns.Get()
	if err != nil {
		return netip.Prefix{}, err
	}
	defer ns.Close()
	h, err := handleAt(ns)
	if err != nil {
		return netip.Prefix{}, err
	}
	defer h.Close()
	bridge, _ := Names(dataDir)
	used, err := routed(h, bridge)
	if err != nil {
		return netip.Prefix{}, err
	}
	return pickRange(firstRange(dataDir), used)
}

// pickRange gives the first range from number start on, going round once, that overlaps none that is used.
func pickRange(start byte, used []route) (netip.Prefix, error) {
	base := rangePool.Addr().As4()
	for i := range ranges {
		base[2] = start + byte(i)
		candidate := netip.PrefixFrom(netip.AddrFrom4(base), 24)
		if !overlapsAny(candidate, used) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, ErrFull
}

func overlapsAny(p netip.Prefix, used []route) bool {
	for _, u := range used {
		if u.Overlaps(p) {
			return true
		}
	}
	return false
}

// firstRange is where a node starts looking.
func firstRange(dataDir string) byte {
	dir := filepath.Clean(dataDir)
	if dir == DefaultDataDir {
		return 0
	}
	return sha256.Sum256([]byte(dir))[0]
}

// route is a range that a link of the node routes.
type route struct {
	netip.Prefix
	link string
}

// routed lists the ranges that links other than the named one route.
func routed(h *netlink.Handle, except string) ([]route, error) {
	routes, err := h.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("cannot list routes: %w", err)
	}
	var used []route
	for _, r := range routes {
		dst, ok := prefixOf(r.Dst)
		if !ok {
			continue
		}
		name := "something without a link"
		if link, err := h.LinkByIndex(r.LinkIndex); err == nil {
			name = link.Attrs().Name
		}
		if name != except {
			used = append(used, route{dst, name})
		}
	}
	return used, nil
}
