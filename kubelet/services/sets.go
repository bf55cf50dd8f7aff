package services

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// setOrder lists the table's sets as they are made.
var setOrder = []string{mapFronts, mapNodePorts, mapBackends, setHairpins, setAffinity}

var (
	typeAddr  = nftables.TypeIPAddr
	typeProto = nftables.TypeInetProto
	typePort  = nftables.TypeInetService
	typeSlot  = nftables.TypeMark
)

// setOf describes a set of the table to the kernel.
func setOf(table *nftables.Table, name string) *nftables.Set {
	s := &nftables.Set{Table: table, Name: name, Concatenation: true, IsMap: true, DataType: concat(typeAddr, typePort)}
	switch name {
	case mapFronts:
		s.KeyType, s.DataType = concat(typeAddr, typeProto, typePort), nftables.TypeVerdict
	case mapNodePorts:
		s.KeyType, s.DataType = concat(typeProto, typePort), nftables.TypeVerdict
	case mapBackends:
		s.KeyType = concat(typeAddr, typeProto, typePort, typeSlot)
	case setHairpins:
		s.KeyType, s.IsMap = concat(typeAddr, typeAddr), false
	case setAffinity:
		s.KeyType, s.IsMap = concat(typeAddr, typeAddr, typeProto, typePort, typeSlot), false
		s.Dynamic, s.HasTimeout = true, true
	}
	return s
}

// concat cannot fail for so few types.
func concat(types ...nftables.SetDatatype) nftables.SetDatatype {
	t, err := nftables.ConcatSetType(types...)
	if err != nil {
		panic(err)
	}
	return t
}

// kernelElement is an element the way the library takes it.
func kernelElement(e Element, value string) nftables.SetElement {
	el := nftables.SetElement{Key: []byte(e.Key)}
	switch {
	case e.Set != mapFronts && e.Set != mapNodePorts:
		el.Val = []byte(value)
	case value == verdictDrop:
		el.VerdictData = &expr.Verdict{Kind: expr.VerdictDrop}
	default:
		el.VerdictData = &expr.Verdict{Kind: expr.VerdictGoto, Chain: value}
	}
	return el
}
