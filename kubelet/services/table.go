package services

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	mdnetlink "github.com/mdlayher/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// elementsPerMessage keeps a list of elements below the 64 KiB that its length field can say.
	elementsPerMessage = 256
)

// Table is one node's table in the kernel. It is not safe for use in parallel: one actor owns it. Every change is one
// batch, which the kernel does completely or not at all.
type Table struct {
	cfg Config
	ns  netns.NsHandle
	// conn and socket are nil until they are needed and after an error.
	conn   *nftables.Conn
	socket *mdnetlink.Conn
}

// Open remembers the network namespace it is called in; every later call works there, from any thread. It changes
// nothing. The caller closes the Table.
func Open(cfg Config) (*Table, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("cannot route services: %w", err)
	}
	ns, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("cannot find the node's network namespace: %w", err)
	}
	return &Table{cfg: cfg, ns: ns}, nil
}

// Close leaves the table in the kernel, so that services go on while the program restarts.
func (t *Table) Close() error {
	t.hangUp()
	return t.ns.Close()
}

func (t *Table) table() *nftables.Table {
	return &nftables.Table{Name: t.cfg.Table, Family: nftables.TableFamilyIPv4}
}

// Apply makes one change. On an error nothing was changed, and the caller calls Resync.
func (t *Table) Apply(ctx context.Context, d Delta) error {
	if d.Empty() {
		return nil
	}
	if err := t.batch(ctx, func(conn *nftables.Conn) error { return t.write(conn, d) }); err != nil {
		return fmt.Errorf("cannot change nft table %s: %w", t.cfg.Table, err)
	}
	return nil
}

// write appends a delta to a batch, in the order in which nothing leads to what is not there.
func (t *Table) write(conn *nftables.Conn, d Delta) error {
	table := t.table()
	for _, p := range d.AddChains {
		addChain(conn, &nftables.Chain{Name: p.Chain(), Table: table}, t.cfg.pickRules(p))
	}
	if err := eachChunk(d.Remove, func(set string, part []Element) error {
		return conn.SetDeleteElements(setOf(table, set), kernelElements(part, nil))
	}); err != nil {
		return err
	}
	if err := eachChunk(d.Add.sorted(), func(set string, part []Element) error {
		return conn.SetAddElements(setOf(table, set), kernelElements(part, d.Add))
	}); err != nil {
		return err
	}
	for _, p := range d.RemoveChains {
		conn.DelChain(&nftables.Chain{Name: p.Chain(), Table: table})
	}
	return nil
}

func addChain(conn *nftables.Conn, c *nftables.Chain, rules []rule) {
	conn.AddChain(c)
	for _, r := range rules {
		conn.AddRule(&nftables.Rule{Table: c.Table, Chain: c, Exprs: r})
	}
}

// eachChunk visits sorted elements in runs of the same set that fit a message.
func eachChunk(all []Element, visit func(set string, part []Element) error) error {
	for len(all) > 0 {
		n := 1
		for n < len(all) && n < elementsPerMessage && all[n].Set == all[0].Set {
			n++
		}
		if err := visit(all[0].Set, all[:n]); err != nil {
			return fmt.Errorf("cannot write elements of %s: %w", all[0].Set, err)
		}
		all = all[n:]
	}
	return nil
}

// kernelElements translates elements, with their values or, to remove them, by key alone.
func kernelElements(part []Element, values Elements) []nftables.SetElement {
	els := make([]nftables.SetElement, 0, len(part))
	for _, e := range part {
		if values == nil {
			els = append(els, nftables.SetElement{Key: []byte(e.Key)})
			continue
		}
		els = append(els, kernelElement(e, values[e]))
	}
	return els
}

// rebuild replaces the whole table in one batch: packets meet the old one or the new one.
func (t *Table) rebuild(ctx context.Context, want Elements, picks []Pick) error {
	err := t.batch(ctx, func(conn *nftables.Conn) error { return t.writeAll(conn, want, picks) })
	if err != nil {
		return fmt.Errorf("cannot write nft table %s: %w", t.cfg.Table, err)
	}
	return nil
}

// writeAll appends the complete table to a batch, in place of one that may be there.
func (t *Table) writeAll(conn *nftables.Conn, want Elements, picks []Pick) error {
	table := conn.AddTable(t.table())
	conn.DelTable(table)
	conn.AddTable(table)
	for _, name := range setOrder {
		set := setOf(table, name)
		if name == setAffinity {
			set.Size = t.cfg.clients()
		}
		if err := conn.AddSet(set, nil); err != nil {
			return fmt.Errorf("cannot describe set %s: %w", name, err)
		}
	}
	for _, name := range fixedOrder {
		addChain(conn, fixedChain(table, name), t.cfg.fixedRules(name))
	}
	return t.write(conn, Delta{AddChains: picks, Add: want})
}

func fixedChain(table *nftables.Table, name string) *nftables.Chain {
	c := &nftables.Chain{Name: name, Table: table}
	if h, ok := baseChains[name]; ok {
		c.Type, c.Hooknum, c.Priority = nftables.ChainTypeNAT, h.num, h.priority
	}
	return c
}

// Remove takes the table away; services are not routed any more. A table that is not there is no error.
func (t *Table) Remove(ctx context.Context) error {
	err := t.batch(ctx, func(conn *nftables.Conn) error {
		conn.DelTable(t.table())
		return nil
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cannot remove nft table %s: %w", t.cfg.Table, err)
	}
	return nil
}

// exists looks for the table.
func (t *Table) exists(conn *nftables.Conn) (bool, error) {
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return false, fmt.Errorf("cannot list nft tables: %w", err)
	}
	return slices.ContainsFunc(tables, func(o *nftables.Table) bool { return o.Name == t.cfg.Table }), nil
}
