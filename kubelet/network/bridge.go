package network

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ipForward is per network namespace, of the thread that opens it.
const ipForward = "/proc/sys/net/ipv4/ip_forward"

// forwardPackets lets the node route between pods and the world.
func (n *Network) forwardPackets(context.Context) error {
	return inside(n.ns, func() error {
		value, err := os.ReadFile(ipForward)
		if err == nil && strings.TrimSpace(string(value)) == "1" {
			return nil
		}
		if err := os.WriteFile(ipForward, []byte("1"), 0); err != nil {
			return fmt.Errorf("cannot enable forwarding: %w", err)
		}
		return nil
	})
}

// inside runs f on a thread that is in another network namespace. If the thread cannot get back, it stays bound to the
// goroutine and so ends with it, instead of serving others from the wrong namespace.
func inside(ns netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	origin, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer origin.Close()
	if err := netns.Set(ns); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = f()
	if back := netns.Set(origin); back != nil {
		return errors.Join(err, fmt.Errorf("cannot return to the thread's network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// refuseOverlap finds out whether the pod range is somebody else's.
func (n *Network) refuseOverlap(context.Context) error {
	used, err := routed(n.handle, n.cfg.Bridge)
	if err != nil {
		return err
	}
	for _, other := range used {
		if other.Overlaps(n.cfg.PodCIDR) {
			return fmt.Errorf("%w: %v overlaps %v, which %s routes; choose another range or remove that link", ErrOverlap, n.cfg.PodCIDR, other.Prefix, other.link)
		}
	}
	return nil
}

// prefixOf gives the destination of a route; a default route has none that counts.
func prefixOf(dst *net.IPNet) (netip.Prefix, bool) {
	if dst == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(dst.IP)
	bits, _ := dst.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), bits), ok && bits > 0
}

func (n *Network) ensureBridge(context.Context) error {
	link, err := n.handle.LinkByName(n.cfg.Bridge)
	if isNotFound(err) {
		link, err = n.addBridge()
	}
	if err != nil {
		return fmt.Errorf("cannot make bridge %s: %w", n.cfg.Bridge, err)
	}
	if link.Type() != "bridge" {
		return fmt.Errorf("cannot use link %s: it is a %s, not a bridge", n.cfg.Bridge, link.Type())
	}
	if mtu := n.mtu(); link.Attrs().MTU != mtu {
		if err := n.handle.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("cannot set the MTU of bridge %s to %d: %w", n.cfg.Bridge, mtu, err)
		}
	}
	if err := n.ensureGateway(link); err != nil {
		return fmt.Errorf("cannot give bridge %s its address: %w", n.cfg.Bridge, err)
	}
	if err := n.handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("cannot bring bridge %s up: %w", n.cfg.Bridge, err)
	}
	return nil
}

// addBridge makes the bridge with a hardware address of its own: else it would take over that of some port, and change it
// under the pods' feet when that port goes.
func (n *Network) addBridge() (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = n.cfg.Bridge, n.mtu()
	hash := sha256.Sum256([]byte(n.cfg.Bridge + n.cfg.Prefix))
	attrs.HardwareAddr = append(net.HardwareAddr{0x0a, 0x59}, hash[:4]...)
	err := n.handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return n.handle.LinkByName(n.cfg.Bridge)
}

// ensureGateway gives the bridge the gateway's address, and takes away what an earlier config gave it.
func (n *Network) ensureGateway(bridge netlink.Link) error {
	want := netip.PrefixFrom(n.Gateway(), n.cfg.PodCIDR.Bits())
	addrs, err := n.handle.AddrList(bridge, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if got, _ := prefixOf(addr.IPNet); got == want {
			continue
		}
		if err := n.handle.AddrDel(bridge, &addr); err != nil {
			return err
		}
	}
	return n.handle.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(want)})
}

// mtu is the configured one, or that of the link the default route leaves by.
func (n *Network) mtu() int {
	if n.cfg.MTU > 0 {
		return n.cfg.MTU
	}
	routes, err := n.handle.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return defaultMTU
	}
	for _, route := range routes {
		if _, specific := prefixOf(route.Dst); specific {
			continue
		}
		if link, err := n.handle.LinkByIndex(route.LinkIndex); err == nil && link.Attrs().MTU > 0 {
			return link.Attrs().MTU
		}
	}
	return defaultMTU
}

// deleteLink removes a link of the node namespace; that it is not there is no error.
func (n *Network) deleteLink(name string) error {
	link, err := n.handle.LinkByName(name)
	if isNotFound(err) {
		return nil
	}
	if err == nil {
		err = n.handle.LinkDel(link)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("cannot remove link %s: %w", name, err)
	}
	return nil
}

func isNotFound(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}
