package services

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// loopback is where ports of the node are not served: a backend elsewhere could not answer to it.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// The fixed chains.
const (
	chainPrerouting  = "prerouting"
	chainOutput      = "output"
	chainPostrouting = "postrouting"
	chainServices    = "services"
)

// rule is the expressions of one rule.
type rule []expr.Any

func join(parts ...[]expr.Any) rule {
	var all rule
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func one(e expr.Any) []expr.Any { return []expr.Any{e} }

// hook is where the kernel calls a base chain.
type hook struct {
	num      *nftables.ChainHook
	priority *nftables.ChainPriority
}

var baseChains = map[string]hook{
	chainPrerouting:  {nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest},
	chainOutput:      {nftables.ChainHookOutput, nftables.ChainPriorityNATDest},
	chainPostrouting: {nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource},
}

// fixedOrder has each chain after those it jumps to by a rule.
var fixedOrder = []string{chainReject, chainServices, chainPrerouting, chainOutput, chainPostrouting}

// fixedRules are the rules of the chains that are always there.
func (c Config) fixedRules(chain string) []rule {
	switch chain {
	case chainReject:
		return rejectRules()
	case chainServices:
		return serviceRules()
	case chainPostrouting:
		return c.postroutingRules()
	}
	return []rule{{&expr.Verdict{Kind: expr.VerdictJump, Chain: chainServices}}}
}

// serviceRules dispatch: one look-up for cluster addresses, one for ports of the node.
func serviceRules() []rule {
	return []rule{
		join(loadFront(false), one(vmap(mapFronts, regAddr))),
		join(within(addrOffset, loopback, expr.CmpOpEq), one(&expr.Verdict{Kind: expr.VerdictReturn})),
		join(isLocal(), loadPort(), one(vmap(mapNodePorts, regProto))),
	}
}

// rejectRules answer what a closed port answers.
func rejectRules() []rule {
	const portUnreachable = 3
	return []rule{
		{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg(regProto)},
			&expr.Cmp{Op: expr.CmpOpEq, Register: reg(regProto), Data: []byte{byte(TCP)}},
			&expr.Reject{Type: unix.NFT_REJECT_TCP_RST},
		},
		{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: portUnreachable}},
	}
}

// postroutingRules give packets the node's address: a backend that calls itself, pods on one link, and what is marked.
func (c Config) postroutingRules() []rule {
	rules := []rule{join(wasSent(), one(loadClient()), one(loadAddr()), one(member(setHairpins, regClient)), one(&expr.Masq{}))}
	if c.LinkRange.IsValid() {
		rules = append(rules, join(wasSent(), within(clientOffset, c.LinkRange, expr.CmpOpEq),
			within(addrOffset, c.LinkRange, expr.CmpOpEq), one(&expr.Masq{})))
	}
	return append(rules, join(hasMark(c.mark()), setMark(c.mark(), false), one(&expr.Masq{})))
}

// pickRules mark what must come back this way, then send to one of the backends.
func (c Config) pickRules(p Pick) []rule {
	rules := c.markRules(p)
	if p.Sticky == 0 {
		return append(rules, join(loadFront(p.NodePort), one(draw(p.Count)), sendToSlot()))
	}
	for i := range p.Count {
		rules = append(rules, join(one(loadClient()), loadFront(p.NodePort), one(&expr.Immediate{Register: reg(regBackend), Data: slot(i)}),
			one(member(setAffinity, regClient)), one(remember(p.Sticky)), sendToSlot()))
	}
	fresh := join(one(loadClient()), loadFront(p.NodePort), one(draw(p.Count)), one(remember(p.Sticky)), sendToSlot())
	full := join(loadFront(p.NodePort), one(draw(p.Count)), sendToSlot()) // no room to remember: the rule before ended early
	return append(rules, fresh, full)
}

// markRules mark strangers' packets to cluster addresses, and all to ports of the node that may leave for another.
func (c Config) markRules(p Pick) []rule {
	switch {
	case p.KeepSource:
		return nil
	case p.NodePort:
		return []rule{setMark(c.mark(), true)}
	case c.PodRange.IsValid():
		return []rule{join(within(clientOffset, c.PodRange, expr.CmpOpNeq), setMark(c.mark(), true))}
	}
	return nil
}

// draw loads a random slot as the last field of a key.
func draw(count int) expr.Any {
	return &expr.Numgen{Register: reg(regBackend), Modulus: uint32(count), Type: unix.NFT_NG_RANDOM}
}

// sendToSlot sends to the backend that the front has in the slot.
func sendToSlot() []expr.Any { return []expr.Any{find(mapBackends, regAddr, regBackend), send()} }
