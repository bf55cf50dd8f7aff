package lease

import (
	"fmt"
	"maps"
	"slices"
)

// Authority is the table of live sessions. It is kept in memory by whoever has the authority over leases; a successor makes a new one. It
// is not safe for concurrent use.
type Authority struct {
	// grace is until when sessions may not have been heard of yet.
	grace Instant
	live  map[SessionID]*grant
	ended map[SessionID]Instant
}

type grant struct {
	until   Instant
	leaving bool
	// past is set when another boot of the node was heard of later.
	past bool
}

// NewAuthority begins a term of authority. The holders of all leases are given one full TTL, because what the last authority knew of
// them is not known any more; nobody, the zero session, is left out.
func NewAuthority(now Instant, holders ...SessionID) *Authority {
	a := &Authority{grace: now + TTL, live: map[SessionID]*grant{}, ended: map[SessionID]Instant{}}
	for _, id := range holders {
		if id != (SessionID{}) {
			a.live[id] = &grant{until: now + TTL}
		}
	}
	return a
}

// Renew opens a session or lets it live for another TTL. ErrSessionEnded is returned when it was ended.
func (a *Authority) Renew(now Instant, id SessionID, leaving bool) error {
	a.Expire(now)
	if _, over := a.ended[id]; over {
		return fmt.Errorf("cannot renew session %s: %w", id, ErrSessionEnded)
	}
	g := a.live[id]
	if g == nil {
		g = &grant{}
		a.live[id] = g
	}
	// A renewal from before the node began to leave may arrive after.
	g.until, g.leaving, g.past = now+TTL, g.leaving || leaving, false
	for other, o := range a.live {
		o.past = o.past || other.Node == id.Node && other != id
	}
	return nil
}

// End ends a session at once, for good.
func (a *Authority) End(now Instant, id SessionID) {
	delete(a.live, id)
	a.ended[id] = now + tombstoneFor
}

// Expire forgets sessions that have run out, and tells whether there were any.
func (a *Authority) Expire(now Instant) (any bool) {
	for id, g := range a.live {
		if now >= g.until {
			delete(a.live, id)
			any = true
		}
	}
	maps.DeleteFunc(a.ended, func(_ SessionID, until Instant) bool { return now >= until })
	return any
}

// Next is the first moment at which a session runs out or the grace is over, unless a renewal comes before; false when there is none.
func (a *Authority) Next(now Instant) (next Instant, any bool) {
	consider := func(at Instant) {
		if !any || at < next {
			next, any = at, true
		}
	}
	if now < a.grace {
		consider(a.grace)
	}
	for _, g := range a.live {
		consider(g.until)
	}
	return next, any
}

// Regrant gives every session that has not been ended another TTL: an authority that was stopped itself heard of no renewal meanwhile.
func (a *Authority) Regrant(now Instant) {
	for _, g := range a.live {
		g.until = max(g.until, now+TTL)
	}
}

// Sessions are the live sessions in order, to be told to all nodes whenever they have changed, and once when the grace is over: one TTL
// after the Authority was made.
func (a *Authority) Sessions(now Instant) Sessions {
	return Sessions{Live: a.sorted(), Grace: now < a.grace}
}

func (a *Authority) sorted() []Session {
	live := make([]Session, 0, len(a.live))
	for id, g := range a.live {
		live = append(live, Session{ID: id, Leaving: g.leaving || g.past})
	}
	slices.SortFunc(live, func(x, y Session) int { return x.ID.Compare(y.ID) })
	return live
}
