package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/supervision"
)

// Network is the pod network of one node. It is safe for concurrent use.
type Network struct {
	cfg    Config
	log    *slog.Logger
	ns     netns.NsHandle  // the node namespace
	handle *netlink.Handle // talks to the kernel about the node namespace

	turn  chan struct{} // holds one token; whoever has it may change what is below and the kernel's state
	alloc *allocator
	pods  map[string]record // by pod UID
}

// Open reads which pods have addresses and remembers the calling thread's network namespace as the node's. It changes
// nothing in the kernel.
func Open(cfg Config) (*Network, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cannot open the pod network: %w", err)
	}
	cfg.PodCIDR = cfg.PodCIDR.Masked()
	n := &Network{cfg: cfg, log: cfg.Log, turn: make(chan struct{}, 1), alloc: newAllocator(cfg.PodCIDR), pods: map[string]record{}}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if err := n.load(); err != nil {
		return nil, err
	}
	var err error
	if n.ns, err = netns.Get(); err != nil {
		return nil, fmt.Errorf("cannot open the node's network namespace: %w", err)
	}
	if n.handle, err = handleAt(n.ns); err != nil {
		n.ns.Close()
		return nil, fmt.Errorf("cannot talk to the node's network namespace: %w", err)
	}
	n.turn <- struct{}{}
	return n, nil
}

// Close gives the handles at the kernel back. Pods stay connected.
func (n *Network) Close() error {
	<-n.turn
	n.handle.Close()
	return n.ns.Close()
}

// Gateway is the address of the bridge, which pods use as their default route and reach the node by.
func (n *Network) Gateway() netip.Addr { return n.cfg.PodCIDR.Addr().Next() }

// Addrs gives the addresses recorded for a pod; none if it has none.
func (n *Network) Addrs(ctx context.Context, podUID string) ([]netip.Addr, error) {
	if err := n.enter(ctx); err != nil {
		return nil, fmt.Errorf("cannot look up the addresses of pod %s: %w", podUID, err)
	}
	defer n.leave()
	if r, ok := n.pods[podUID]; ok {
		return []netip.Addr{r.Addr}, nil
	}
	return nil, nil
}

// Setup makes bridge, forwarding and masquerading, or repairs what differs from the config. It refuses with ErrOverlap
// when something else on the node routes a part of the pod range.
func (n *Network) Setup(ctx context.Context) error {
	if err := n.enter(ctx); err != nil {
		return fmt.Errorf("cannot set up the pod network: %w", err)
	}
	defer n.leave()
	for _, step := range []func(context.Context) error{n.forwardPackets, n.refuseOverlap, n.ensureBridge, n.ensureMasquerade} {
		err := ctx.Err()
		if err == nil {
			err = step(ctx)
		}
		if err != nil {
			return fmt.Errorf("cannot set up the pod network: %w", err)
		}
	}
	return nil
}

// Teardown removes all links of pods, the bridge and the nft table, and forgets all addresses. Forwarding stays on, since
// others may rely on it. It goes on after a failure and returns all of them.
func (n *Network) Teardown(ctx context.Context) error {
	if err := n.enter(ctx); err != nil {
		return fmt.Errorf("cannot remove the pod network: %w", err)
	}
	defer n.leave()
	errs := []error{n.sweep(ctx, func(string) bool { return false }), n.deleteLink(n.cfg.Bridge), n.deleteTable(ctx)}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot remove the pod network: %w", err)
	}
	return nil
}

// enter waits for the turn to change things; leave passes it on.
func (n *Network) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-n.turn:
	}
	if err := supervision.CheckFence(ctx); err != nil {
		n.leave()
		return err
	}
	return nil
}

func (n *Network) leave() { n.turn <- struct{}{} }

// handleAt opens a connection to the kernel about one namespace, each answer of which is waited for a bounded time.
func handleAt(ns netns.NsHandle) (*netlink.Handle, error) {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := h.SetSocketTimeout(answerTimeout); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}
