package services

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	mdnetlink "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Found is what a Resync found to be different, and has put right.
type Found struct {
	// Rebuilt says why the whole table was written anew, empty when it was not. Affinities are forgotten then.
	Rebuilt string
	// Missing and Strange count elements; one with a strange value counts as both.
	Missing, Strange int
}

// Clean tells that nothing was different.
func (f Found) Clean() bool { return f == Found{} }

// Resync reads the table and makes it what it should be, whatever was there: nothing, the table of an earlier process, or
// one that somebody else changed. A table that is right is not written.
func (t *Table) Resync(ctx context.Context, want Elements, picks []Pick) (Found, error) {
	found, err := t.resync(ctx, want, picks)
	if err != nil {
		t.hangUp()
	}
	return found, err
}

func (t *Table) resync(ctx context.Context, want Elements, picks []Pick) (Found, error) {
	conn, err := t.dial(ctx)
	if err != nil {
		return Found{}, err
	}
	wrong, err := t.structure(conn, picks)
	if err != nil {
		return Found{}, err
	}
	if wrong != "" {
		return Found{Rebuilt: wrong}, t.rebuild(ctx, want, picks)
	}
	have, err := t.elements(conn)
	if err != nil {
		return Found{}, err
	}
	var d Delta
	d.Remove, d.Add = between(have, want)
	return Found{Missing: len(d.Add), Strange: len(d.Remove)}, t.Apply(ctx, d)
}

// structure compares everything but elements and says what is wrong.
func (t *Table) structure(conn *nftables.Conn, picks []Pick) (wrong string, err error) {
	if ok, err := t.exists(conn); err != nil || !ok {
		return "no table", err
	}
	if wrong, err := t.sets(conn); err != nil || wrong != "" {
		return wrong, err
	}
	want := map[string][]rule{}
	for _, name := range fixedOrder {
		want[name] = t.cfg.fixedRules(name)
	}
	for _, p := range picks {
		want[p.Chain()] = t.cfg.pickRules(p)
	}
	return t.chains(conn, want)
}

// sets compares names and kinds of the sets.
func (t *Table) sets(conn *nftables.Conn) (wrong string, err error) {
	have, err := conn.GetSets(t.table())
	if err != nil {
		return "", fmt.Errorf("cannot list sets of nft table %s: %w", t.cfg.Table, err)
	}
	if len(have) != len(setOrder) {
		return fmt.Sprintf("%d sets in place of %d", len(have), len(setOrder)), nil
	}
	for _, s := range have {
		want := setOf(t.table(), s.Name)
		if !slices.Contains(setOrder, s.Name) || s.IsMap != want.IsMap || s.Dynamic != want.Dynamic || !sameTypes(s, want) {
			return "set " + s.Name + " is not ours", nil
		}
	}
	return "", nil
}

// sameTypes compares the types of keys and data. Of maps of verdicts the library reports the type of the data as that of
// the key.
func sameTypes(have, want *nftables.Set) bool {
	if want.DataType.Name == nftables.TypeVerdict.Name {
		return have.KeyType.Name == nftables.TypeVerdict.Name
	}
	return have.KeyType.Name == want.KeyType.Name && (!want.IsMap || have.DataType.Name == want.DataType.Name)
}

// chains compares the chains and their rules.
func (t *Table) chains(conn *nftables.Conn, want map[string][]rule) (wrong string, err error) {
	all, err := conn.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return "", fmt.Errorf("cannot list nft chains: %w", err)
	}
	seen := 0
	for _, c := range all {
		if c.Table.Name != t.cfg.Table {
			continue
		}
		rules, ok := want[c.Name]
		if !ok || !sameHook(c) {
			return "chain " + c.Name + " is not ours", nil
		}
		seen++
		same, err := t.sameRules(conn, c, rules)
		if err != nil || !same {
			return "rules of chain " + c.Name + " differ", err
		}
	}
	if seen != len(want) {
		return fmt.Sprintf("%d chains in place of %d", seen, len(want)), nil
	}
	return "", nil
}

func sameHook(c *nftables.Chain) bool {
	want, ok := baseChains[c.Name]
	if !ok || c.Hooknum == nil || c.Priority == nil {
		return !ok && c.Hooknum == nil
	}
	return *c.Hooknum == *want.num && *c.Priority == *want.priority && c.Type == nftables.ChainTypeNAT
}

func (t *Table) sameRules(conn *nftables.Conn, c *nftables.Chain, want []rule) (bool, error) {
	have, err := conn.GetRules(t.table(), c)
	if err != nil {
		return false, fmt.Errorf("cannot list rules of nft chain %s: %w", c.Name, err)
	}
	return slices.EqualFunc(have, want, func(h *nftables.Rule, w rule) bool { return sameRule(h.Exprs, w) }), nil
}

// sameRule compares expressions in the form that is sent to the kernel.
func sameRule(have, want []expr.Any) bool {
	return slices.EqualFunc(have, want, func(a, b expr.Any) bool {
		rawA, errA := expr.Marshal(unix.NFPROTO_IPV4, a)
		rawB, errB := expr.Marshal(unix.NFPROTO_IPV4, b)
		return errA == nil && errB == nil && bytes.Equal(rawA, rawB)
	})
}

// elements reads all elements that the planner has a say in.
func (t *Table) elements(conn *nftables.Conn) (Elements, error) {
	all := Elements{}
	for _, name := range setOrder {
		if name == setAffinity {
			continue
		}
		set := setOf(t.table(), name)
		els, err := conn.GetSetElements(set)
		if err != nil {
			return nil, fmt.Errorf("cannot list elements of %s: %w", name, err)
		}
		for _, e := range els {
			all[Element{name, string(e.Key)}] = valueOf(set, e)
		}
	}
	return all, nil
}

// valueOf translates a value back; one that we never write becomes one that never equals ours.
func valueOf(s *nftables.Set, e nftables.SetElement) string {
	if s.DataType.Name != nftables.TypeVerdict.Name {
		return string(e.Val)
	}
	code, chain := verdict(e.Val)
	switch code {
	case expr.VerdictGoto:
		return chain
	case expr.VerdictDrop:
		return verdictDrop
	}
	return fmt.Sprintf("verdict %d %s", code, chain)
}

// verdict reads the attributes of a verdict.
func verdict(raw []byte) (kind expr.VerdictKind, chain string) {
	ad, err := mdnetlink.NewAttributeDecoder(raw)
	if err != nil {
		return 0, ""
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_VERDICT_CODE:
			kind = expr.VerdictKind(int32(ad.Uint32()))
		case unix.NFTA_VERDICT_CHAIN:
			chain = ad.String()
		}
	}
	return kind, chain
}
