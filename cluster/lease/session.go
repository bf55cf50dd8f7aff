package lease

import (
	"cmp"
	"time"
)

// Instant is a moment by a monotonic clock: the time since a moment that only the owner of the clock knows. Instants of two processes
// cannot be compared.
type Instant = time.Duration

// SessionID names the session of one node and boot. The zero value is nobody.
type SessionID struct{ Node, Boot string }

// String is the session for people: node/boot.
func (s SessionID) String() string {
	if s == (SessionID{}) {
		return "nobody"
	}
	return s.Node + "/" + s.Boot
}

// Compare orders sessions by node and boot.
func (s SessionID) Compare(o SessionID) int {
	return cmp.Or(cmp.Compare(s.Node, o.Node), cmp.Compare(s.Boot, o.Boot))
}

// Session is what the authority says of a live session.
type Session struct {
	ID SessionID
	// Leaving is set when its node is stopping, or has booted again: it is to get no more leases.
	Leaving bool
}

// Proof is what a node can prove of its own session. What counts is when a renewal was asked for, not when it was answered: the
// authority cannot have begun to count before.
type Proof struct {
	// seq is the last request, sent when it was made; of earlier ones no answer is accepted.
	seq  uint64
	sent Instant
	// asked is set when there was a request, waits while it is not answered.
	asked, waits bool
	// proven is when the last answered request was made; held that there was one.
	proven Instant
	held   bool
}

// Due tells whether a renewal is to be asked for.
func (p *Proof) Due(now Instant) bool {
	if !p.asked {
		return true
	}
	if p.waits {
		return now-p.sent >= renewRetry
	}
	return now-p.sent >= RenewEvery
}

// Ask begins a renewal and returns its number, which the answer has to carry.
func (p *Proof) Ask(now Instant) uint64 {
	p.seq++
	p.sent, p.asked, p.waits = now, true, true
	return p.seq
}

// Answered takes the authority's yes to a request; an answer to an earlier one counts for nothing.
func (p *Proof) Answered(seq uint64) {
	if seq == p.seq && p.waits {
		p.proven, p.held, p.waits = p.sent, true, false
	}
}

// MayStart tells whether work may be started and leases may be taken.
func (p *Proof) MayStart(now Instant) bool { return p.held && now-p.proven < startFor }

// MustStop tells whether running work has to be cancelled.
func (p *Proof) MustStop(now Instant) bool { return !p.held || now-p.proven >= workFor }
