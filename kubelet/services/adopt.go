package services

import (
	"context"
	"encoding/binary"
	"net/netip"
)

// maxSlot bounds what is believed of a table that others may have written to.
const maxSlot = 1 << 16

// Slots reads which backend has which slot in the kernel. A table that is not there has none.
func (t *Table) Slots(ctx context.Context) (map[Front][]netip.AddrPort, error) {
	slots, err := t.slots(ctx)
	if err != nil {
		t.hangUp()
	}
	return slots, err
}

func (t *Table) slots(ctx context.Context) (map[Front][]netip.AddrPort, error) {
	conn, err := t.dial(ctx)
	if err != nil {
		return nil, err
	}
	if ok, err := t.exists(conn); err != nil || !ok {
		return nil, err
	}
	if wrong, err := t.sets(conn); err != nil || wrong != "" {
		return nil, err // Resync will write it anew
	}
	have, err := t.elements(conn)
	if err != nil {
		return nil, err
	}
	return slotsOf(have), nil
}

// slotsOf reads elements of backends back.
func slotsOf(have Elements) map[Front][]netip.AddrPort {
	found := map[Front][]netip.AddrPort{}
	for e, value := range have {
		if e.Set != mapBackends {
			continue
		}
		f, n, b := backendOf([]byte(e.Key), []byte(value))
		if n >= maxSlot {
			continue
		}
		for len(found[f]) <= n {
			found[f] = append(found[f], netip.AddrPort{})
		}
		found[f][n] = b
	}
	return found
}

// backendOf reads an element of 16 bytes of key and 8 of value.
func backendOf(key, value []byte) (f Front, slot int, b netip.AddrPort) {
	f = Front{netip.AddrFrom4([4]byte(key[:4])), Proto(key[4]), binary.BigEndian.Uint16(key[8:])}
	b = netip.AddrPortFrom(netip.AddrFrom4([4]byte(value[:4])), binary.BigEndian.Uint16(value[4:]))
	return f, int(binary.NativeEndian.Uint32(key[12:])), b
}

// Adopt takes over slots that an earlier process gave, so that clients keep their affinity over a restart. It is called
// before the first Set.
func (p *Planner) Adopt(slots map[Front][]netip.AddrPort) { p.adopted = slots }

// slotsBefore gives a front's slots so far: its Service's own or, the first time, those of an earlier process.
func (p *Planner) slotsBefore(name Name, f Front) []netip.AddrPort {
	if r, ok := p.services[name][f]; ok {
		return r.Backends
	}
	slots := p.adopted[f]
	delete(p.adopted, f)
	return slots
}
