package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	mdnetlink "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	sourceOffset      = 12 // of the source address in an IPv4 header
	destinationOffset = 16
	addressLength     = 4
)

// multicast destinations are never masqueraded.
var multicast = netip.MustParsePrefix("224.0.0.0/4")

func (n *Network) table() *nftables.Table {
	return &nftables.Table{Name: tablePrefix + n.cfg.Prefix, Family: nftables.TableFamilyIPv4}
}

// ensureMasquerade replaces the node's own table in one transaction: what pods send out of the node leaves with the
// node's address.
func (n *Network) ensureMasquerade(ctx context.Context) error {
	conn, err := n.nft(ctx)
	if err != nil {
		return err
	}
	table := conn.AddTable(n.table())
	conn.DelTable(table)
	conn.AddTable(table)
	chain := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: n.masqueradeRule()})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("cannot write nft table %s: %w", table.Name, err)
	}
	return nil
}

// masqueradeRule reads: from the pod range, to none of the direct ranges, not by the bridge: masquerade.
func (n *Network) masqueradeRule() []expr.Any {
	rule := inRange(sourceOffset, n.cfg.PodCIDR, expr.CmpOpEq)
	for _, direct := range append([]netip.Prefix{n.cfg.PodCIDR, multicast}, n.cfg.Direct...) {
		rule = append(rule, inRange(destinationOffset, direct.Masked(), expr.CmpOpNeq)...)
	}
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, n.cfg.Bridge)
	return append(rule,
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name},
		&expr.Counter{},
		&expr.Masq{})
}

// inRange compares an address of the packet with a range.
func inRange(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	mask := ^uint32(0)
	if p.Bits() < 32 {
		mask <<= 32 - p.Bits()
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLength},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: addressLength,
			Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, addressLength)},
		&expr.Cmp{Op: op, Register: 1, Data: p.Addr().AsSlice()},
	}
}

func (n *Network) deleteTable(ctx context.Context) error {
	conn, err := n.nft(ctx)
	if err != nil {
		return err
	}
	conn.DelTable(n.table())
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cannot remove nft table %s: %w", n.table().Name, err)
	}
	return nil
}

// nft opens a transaction in the node namespace that must be answered before ctx ends.
func (n *Network) nft(ctx context.Context) (*nftables.Conn, error) {
	deadline := nftables.WithSockOptions(func(conn *mdnetlink.Conn) error {
		if end, ok := ctx.Deadline(); ok {
			return conn.SetDeadline(end)
		}
		return nil
	})
	conn, err := nftables.New(nftables.WithNetNSFd(int(n.ns)), deadline)
	if err != nil {
		return nil, fmt.Errorf("cannot talk to nftables: %w", err)
	}
	return conn, nil
}
