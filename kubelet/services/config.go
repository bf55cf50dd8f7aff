package services

import (
	"fmt"
	"net/netip"
	"regexp"
)

// DefaultMark is the bit of a packet's mark that says it is to leave with the node's address. It is set and cleared
// within one packet's way through the node.
const DefaultMark uint32 = 0x4000

// DefaultClients is how many clients with affinity are remembered at a time. Each takes about 100 bytes of the kernel.
const DefaultClients uint32 = 1 << 18

// maxTableName is the kernel's limit less its closing zero.
const maxTableName = 255

// Config says whose table it is and what the node's pods look like to it.
type Config struct {
	// Table is the name of the nftables table, of family ip, that belongs to this node alone.
	Table string
	// PodRange has the pods of the whole cluster. What others send to a cluster address gets the node's address, so that
	// the answer comes back this way; the zero value gives it to nobody.
	PodRange netip.Prefix
	// LinkRange has the pods of this node when they reach each other without the node's routing, as on a bridge with the
	// range on the link. Answers would then miss the node, so that such traffic gets the node's address; the zero value
	// when every packet of a pod goes through the node's routing.
	LinkRange netip.Prefix
	// Mark is one bit; 0 takes DefaultMark. Nodes that share a namespace may share the bit.
	Mark uint32
	// Clients is how many clients with affinity are remembered at a time; 0 takes DefaultClients. One more is served
	// without being remembered.
	Clients uint32
}

var tableForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)

func (c Config) validate() error {
	switch {
	case len(c.Table) > maxTableName || !tableForm.MatchString(c.Table):
		return fmt.Errorf("table name %q is not a letter and up to %d letters, digits, - and _", c.Table, maxTableName-1)
	case c.Mark&(c.Mark-1) != 0:
		return fmt.Errorf("mark %#x is not a single bit", c.Mark)
	}
	for _, r := range []netip.Prefix{c.PodRange, c.LinkRange} {
		if r.IsValid() && !r.Addr().Is4() {
			return fmt.Errorf("pod range %v is not IPv4", r)
		}
	}
	return nil
}

func (c Config) clients() uint32 {
	if c.Clients == 0 {
		return DefaultClients
	}
	return c.Clients
}

func (c Config) mark() uint32 {
	if c.Mark == 0 {
		return DefaultMark
	}
	return c.Mark
}
