package hotloop

import (
	"math/bits"
	"time"
)

// pair is what is known of one writer at one object.
type pair struct {
	// began is the start of the window that writes, noOps and wakes are counted in. wakes is the writer's count when it began.
	began  time.Time
	writes int
	noOps  int
	wakes  uint64
	// last is the second of the newest of the busy bits; slow counts writes since busy was empty, slowWakes as wakes does.
	last      int64
	busy      uint64
	slow      int
	slowWakes uint64
	// returned counts the contents in a row that the object had some time before; returnWakes as wakes does.
	returned    int
	returnWakes uint64
}

// wrote counts a write and tells what it trips; wakes is how many foreign wakes the writer has had in all.
func (p *pair) wrote(now time.Time, wakes uint64, noOp bool) (Reason, int) {
	p.turn(now, wakes)
	p.writes++
	p.slow++
	if noOp {
		p.noOps++
	}
	switch foreign := int(wakes - p.wakes); {
	case p.noOps >= noOps && 2*foreign < p.noOps:
		return NoOpWrites, p.noOps
	case p.writes >= writes && 10*foreign < p.writes:
		return WriteRate, p.writes
	}
	if slow := int(wakes - p.slowWakes); bits.OnesCount64(p.busy) >= busySeconds && 10*slow < p.slow {
		return WriteRate, p.slow
	}
	return 0, 0
}

// turn moves both spans on to now.
func (p *pair) turn(now time.Time, wakes uint64) {
	if now.Sub(p.began) >= window {
		p.began, p.writes, p.noOps, p.wakes = now, 0, 0, wakes
	}
	second := now.Unix()
	if passed := second - p.last; passed >= busySpan || passed < 0 {
		p.busy, p.slow, p.slowWakes = 0, 0, wakes
	} else {
		p.busy = shifted(p.busy, passed)
	}
	p.last = second
	p.busy |= 1
}

// cycled counts a content that the object had before, or begins anew at one that it did not have.
func (p *pair) cycled(wakes uint64, returned bool) (count int, tripped bool) {
	if !returned {
		p.returned, p.returnWakes = 0, wakes
		return 0, false
	}
	p.returned++
	return p.returned, p.returned >= returns && 2*int(wakes-p.returnWakes) < p.returned
}

// clear begins anew, as after a trip.
func (p *pair) clear() { *p = pair{} }
