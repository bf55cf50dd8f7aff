package services

import (
	"net/netip"
	"time"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The order of fields in registers. Every key of the table is a run of neighbours in it, so nothing is ever copied.
const (
	regClient = iota
	regAddr
	regProto
	regPort
	regBackend
	regBackendPort
)

const (
	clientOffset = 12 // of the source address in an IPv4 header
	addrOffset   = 16 // of the destination address
	addrLength   = 4
	portOffset   = 2 // of the destination port in a TCP or UDP header
	portLength   = 2
)

// reg numbers a register of four bytes the way the kernel reports it: by its old name where it has one.
func reg(n uint32) uint32 {
	const perOld, firstNew = 4, 8
	if n%perOld == 0 {
		return 1 + n/perOld
	}
	return firstNew + n
}

func loadClient() expr.Any {
	return &expr.Payload{DestRegister: reg(regClient), Base: expr.PayloadBaseNetworkHeader, Offset: clientOffset, Len: addrLength}
}

func loadAddr() expr.Any {
	return &expr.Payload{DestRegister: reg(regAddr), Base: expr.PayloadBaseNetworkHeader, Offset: addrOffset, Len: addrLength}
}

// loadFront loads the dialled address; for a port of the node that is 0.0.0.0.
func loadFront(nodePort bool) []expr.Any {
	load := []expr.Any{loadAddr()}
	if nodePort {
		none := make([]byte, addrLength)
		load = append(load, &expr.Bitwise{SourceRegister: reg(regAddr), DestRegister: reg(regAddr), Len: addrLength, Mask: none, Xor: none})
	}
	return append(load, loadPort()...)
}

func loadPort() []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg(regProto)},
		&expr.Payload{DestRegister: reg(regPort), Base: expr.PayloadBaseTransportHeader, Offset: portOffset, Len: portLength},
	}
}

// vmap goes where the map says, or on.
func vmap(name string, from uint32) expr.Any {
	return &expr.Lookup{SourceRegister: reg(from), DestRegister: unix.NFT_REG_VERDICT, IsDestRegSet: true, SetName: name}
}

// find loads what the map has, or leaves the rule.
func find(name string, from, to uint32) expr.Any {
	return &expr.Lookup{SourceRegister: reg(from), DestRegister: reg(to), IsDestRegSet: true, SetName: name}
}

// member leaves the rule unless the set has the key.
func member(name string, from uint32) expr.Any {
	return &expr.Lookup{SourceRegister: reg(from), SetName: name}
}

// remember writes, or renews, that the client has the slot in the registers.
func remember(seconds int32) expr.Any {
	return &expr.Dynset{SrcRegKey: reg(regClient), SetName: setAffinity, Operation: unix.NFT_DYNSET_OP_UPDATE,
		Timeout: time.Duration(seconds) * time.Second}
}

// within compares an address of the packet with a range.
func within(offset uint32, p netip.Prefix, op expr.CmpOp) []expr.Any {
	mask := ^uint32(0) << (32 - p.Bits())
	return []expr.Any{
		&expr.Payload{DestRegister: reg(regClient), Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addrLength},
		&expr.Bitwise{SourceRegister: reg(regClient), DestRegister: reg(regClient), Len: addrLength,
			Mask: binaryutil.BigEndian.PutUint32(mask), Xor: make([]byte, addrLength)},
		&expr.Cmp{Op: op, Register: reg(regClient), Data: p.Masked().Addr().AsSlice()},
	}
}

// isLocal leaves the rule unless the packet is for an address of this node.
func isLocal() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: reg(regClient), FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg(regClient), Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// anyOf leaves the rule unless one of the bits is set in what is loaded.
func anyOf(load expr.Any, bits uint32) []expr.Any {
	zero := make([]byte, 4)
	return []expr.Any{
		load,
		&expr.Bitwise{SourceRegister: reg(regClient), DestRegister: reg(regClient), Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: zero},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg(regClient), Data: zero},
	}
}

// wasSent leaves the rule unless the connection's destination was changed.
func wasSent() []expr.Any {
	const destinationChanged = 1 << 5 // IPS_DST_NAT of the kernel's connection tracking
	return anyOf(&expr.Ct{Key: expr.CtKeySTATUS, Register: reg(regClient)}, destinationChanged)
}

// setMark sets or clears the table's bit of the packet's mark.
func setMark(bit uint32, on bool) []expr.Any {
	xor := uint32(0)
	if on {
		xor = bit
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: reg(regClient)},
		&expr.Bitwise{SourceRegister: reg(regClient), DestRegister: reg(regClient), Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(^bit), Xor: binaryutil.NativeEndian.PutUint32(xor)},
		&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: reg(regClient)},
	}
}

// hasMark leaves the rule unless the bit is set.
func hasMark(bit uint32) []expr.Any {
	return anyOf(&expr.Meta{Key: expr.MetaKeyMARK, Register: reg(regClient)}, bit)
}

// send changes the destination to the backend in the registers.
func send() expr.Any {
	return &expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, Specified: true,
		RegAddrMin: reg(regBackend), RegAddrMax: reg(regBackend), RegProtoMin: reg(regBackendPort), RegProtoMax: reg(regBackendPort)}
}
