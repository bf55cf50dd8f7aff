package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Attach connects the pod's network namespace, pinned at path, and returns the pod's addresses. Repeated for a pod that
// is connected it changes nothing; for one whose namespace is a new one, as after a reboot, it connects that one with the
// same address. The errors a caller may act on are ErrFull and ErrNamespace. After a failure the address stays the
// pod's until Detach.
func (n *Network) Attach(ctx context.Context, podUID, path string) ([]netip.Addr, error) {
	addr, err := n.attach(ctx, podUID, path)
	if err != nil {
		return nil, fmt.Errorf("cannot connect pod %s: %w", podUID, err)
	}
	return []netip.Addr{addr}, nil
}

func (n *Network) attach(ctx context.Context, podUID, path string) (netip.Addr, error) {
	if podUID == "" {
		return netip.Addr{}, errors.New("no pod UID given")
	}
	if err := n.enter(ctx); err != nil {
		return netip.Addr{}, err
	}
	defer n.leave()
	ns, err := n.openNamespace(path)
	if err != nil {
		return netip.Addr{}, err
	}
	defer ns.Close()
	r, err := n.reserve(podUID, path)
	if err != nil {
		return netip.Addr{}, err
	}
	return r.Addr, n.connect(ctx, r, ns)
}

// openNamespace opens a pod's namespace and makes sure that it is not the node's: what follows would take the node's own
// interfaces for the pod's.
func (n *Network) openNamespace(path string) (netns.NsHandle, error) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return netns.None(), fmt.Errorf("%w: %w", ErrNamespace, err)
	}
	if kind, err := unix.IoctlRetInt(int(ns), unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		ns.Close()
		return netns.None(), fmt.Errorf("%w: %s is something else", ErrNamespace, path)
	}
	if ns.Equal(n.ns) {
		ns.Close()
		return netns.None(), fmt.Errorf("%w: %s is the node's own", ErrNamespace, path)
	}
	return ns, nil
}

func (n *Network) connect(ctx context.Context, r record, ns netns.NsHandle) error {
	pod, err := handleAt(ns)
	if err != nil {
		return fmt.Errorf("cannot talk to the pod's namespace: %w", err)
	}
	defer pod.Close()
	if err := n.ensureVeth(r, ns, pod); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.configurePort(r); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.configurePod(r, pod)
}

// ensureVeth makes the pair of interfaces unless exactly that pair is there. Half of another pair, as a pod's earlier
// sandbox leaves it, is removed first.
func (n *Network) ensureVeth(r record, ns netns.NsHandle, pod *netlink.Handle) error {
	host, hostErr := n.handle.LinkByName(r.Link)
	peer, peerErr := pod.LinkByName(podInterface)
	if hostErr == nil && peerErr == nil && host.Attrs().ParentIndex == peer.Attrs().Index &&
		peer.Attrs().ParentIndex == host.Attrs().Index {
		return nil
	}
	if err := n.deleteLink(r.Link); err != nil {
		return err
	}
	if peerErr == nil {
		if err := pod.LinkDel(peer); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("cannot remove the pod's old interface: %w", err)
		}
	}
	if err := n.addVeth(r, ns); err != nil {
		return fmt.Errorf("cannot make the veth pair %s: %w", r.Link, err)
	}
	return nil
}

// addVeth makes the pair with its pod end inside the pod. The pod end's hardware address follows from its IP address, so
// that a neighbour's cache is still right when a later pod gets the same address.
func (n *Network) addVeth(r record, ns netns.NsHandle) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = r.Link, n.mtu()
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerMTU = podInterface, uint32(attrs.MTU)
	veth.PeerNamespace = netlink.NsFd(ns)
	veth.PeerHardwareAddr = append(net.HardwareAddr{0x0a, 0x58}, r.Addr.AsSlice()...)
	return n.handle.LinkAdd(veth)
}

// configurePort plugs the host end into the bridge. Hairpin lets a pod reach itself through its own service.
func (n *Network) configurePort(r record) error {
	bridge, err := n.handle.LinkByName(n.cfg.Bridge)
	if err != nil {
		return fmt.Errorf("cannot find bridge %s: %w", n.cfg.Bridge, err)
	}
	host, err := n.handle.LinkByName(r.Link)
	if err != nil {
		return fmt.Errorf("cannot find host end %s: %w", r.Link, err)
	}
	if host.Attrs().MasterIndex != bridge.Attrs().Index {
		if err := n.handle.LinkSetMaster(host, bridge); err != nil {
			return fmt.Errorf("cannot plug %s into bridge %s: %w", r.Link, n.cfg.Bridge, err)
		}
	}
	if err := n.handle.LinkSetHairpin(host, true); err != nil {
		return fmt.Errorf("cannot set hairpin of %s: %w", r.Link, err)
	}
	if err := n.handle.LinkSetUp(host); err != nil {
		return fmt.Errorf("cannot bring %s up: %w", r.Link, err)
	}
	return nil
}

// configurePod gives the pod its loopback, its address and its way out.
func (n *Network) configurePod(r record, pod *netlink.Handle) error {
	if err := bringUp(pod, "lo"); err != nil {
		return err
	}
	eth, err := pod.LinkByName(podInterface)
	if err != nil {
		return fmt.Errorf("cannot find the pod's %s: %w", podInterface, err)
	}
	addr := netip.PrefixFrom(r.Addr, n.cfg.PodCIDR.Bits())
	if err := pod.AddrReplace(eth, &netlink.Addr{IPNet: ipNet(addr)}); err != nil {
		return fmt.Errorf("cannot give the pod address %v: %w", addr, err)
	}
	if err := pod.LinkSetUp(eth); err != nil {
		return fmt.Errorf("cannot bring the pod's %s up: %w", podInterface, err)
	}
	route := &netlink.Route{LinkIndex: eth.Attrs().Index, Gw: n.Gateway().AsSlice(), Src: r.Addr.AsSlice()}
	if err := pod.RouteReplace(route); err != nil {
		return fmt.Errorf("cannot give the pod its default route: %w", err)
	}
	return nil
}

func bringUp(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("cannot bring the pod's %s up: %w", name, err)
	}
	return nil
}

// Detach disconnects a pod and gives its address back. Detaching a pod that has none is no error.
func (n *Network) Detach(ctx context.Context, podUID string) error {
	err := n.enter(ctx)
	if err == nil {
		defer n.leave()
		err = n.detach(podUID)
	}
	if err != nil {
		return fmt.Errorf("cannot disconnect pod %s: %w", podUID, err)
	}
	return nil
}

// detach removes the link first: an address is free when nothing has it any more.
func (n *Network) detach(podUID string) error {
	r, ok := n.pods[podUID]
	if !ok {
		return nil
	}
	if err := n.deleteLink(r.Link); err != nil {
		return err
	}
	return n.release(podUID)
}

// Sweep disconnects every pod that live does not know, and removes host ends that no record explains. It goes on after
// a failure and returns all of them.
func (n *Network) Sweep(ctx context.Context, live func(podUID string) bool) error {
	err := n.enter(ctx)
	if err == nil {
		defer n.leave()
		err = n.sweep(ctx, live)
	}
	if err != nil {
		return fmt.Errorf("cannot sweep the pod network: %w", err)
	}
	return nil
}

func (n *Network) sweep(ctx context.Context, live func(podUID string) bool) error {
	var errs []error
	for uid := range n.pods {
		if ctx.Err() == nil && !live(uid) {
			errs = append(errs, n.detach(uid))
		}
	}
	links, err := n.handle.LinkList()
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("cannot list links: %w", err))...)
	}
	for _, link := range links {
		if ctx.Err() == nil && n.stray(link, links) {
			errs = append(errs, n.deleteLink(link.Attrs().Name))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// stray reports whether a link is a host end of this node that no record explains. A link in another bridge is not ours,
// whatever its name.
func (n *Network) stray(link netlink.Link, all []netlink.Link) bool {
	name := link.Attrs().Name
	if link.Type() != "veth" || !n.owns(name) || n.linkTaken(name) {
		return false
	}
	for _, master := range all {
		if master.Attrs().Index == link.Attrs().MasterIndex {
			return master.Attrs().Name == n.cfg.Bridge
		}
	}
	return true
}
