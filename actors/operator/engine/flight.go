package engine

import "context"

// reborn makes up for what the last generation of an actor left behind: the answer that it owes, and a pass that may still run but does not
// count for the limit any more.
func (b *board) reborn(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	if e == nil {
		return
	}
	e.counted = 0
	if e.holder != nil {
		e.holder = nil
		b.free()
	}
}

// claim gives an actor its next pass; nil when it has to wait for its turn, of which it will be told.
func (b *board) claim(key Key) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &flight{key: key}
	e := b.entries[key]
	if b.limit == 0 || e == nil {
		return f
	}
	if !e.granted && !b.take(e) {
		return nil
	}
	e.granted, e.holder = false, f
	return f
}

// take takes one of the limit for an entry, or puts it in the queue; the lock is held.
func (b *board) take(e *entry) bool {
	switch {
	case e.queued:
		return false
	case b.used < b.limit && len(b.queue) == 0:
		b.used++
		return true
	}
	e.queued = true
	b.queue = append(b.queue, e.key)
	return false
}

// yield gives back what is kept for a manifest whose pass may not begin after all.
func (b *board) yield(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[key]; e != nil && e.granted {
		e.granted = false
		b.free()
	}
}

// vacate gives back all that an entry has of the limit; the lock is held.
func (b *board) vacate(e *entry) {
	if e.granted || e.holder != nil {
		e.granted, e.holder = false, nil
		b.free()
	}
}

// free gives one of the limit back; the lock is held.
func (b *board) free() {
	b.used--
	if len(b.queue) > 0 {
		b.knock()
	}
}

// grants keeps what is free of the limit for those who wait, in order, and tells which of them have an actor.
func (b *board) grants() (told, made []Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.used < b.limit && len(b.queue) > 0 {
		e := b.entries[b.queue[0]]
		b.queue = b.queue[1:]
		if e == nil || !e.queued {
			continue
		}
		b.used++
		e.queued, e.granted = false, true
		if e.actor {
			told = append(told, e.key)
			continue
		}
		b.engage(e)
		made = append(made, e.key)
	}
	if len(b.queue) == 0 {
		b.queue = nil
	}
	return told, made
}

// enter notes that a pass has begun.
func (b *board) enter(f *flight, cancel context.CancelCauseFunc) (gains uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.cancel = cancel
	b.flights[f.key] = append(b.flights[f.key], f)
	b.flying++
	if e := b.entries[f.key]; e != nil {
		gains = e.gains
	}
	return gains
}

// admit notes whether Start let a pass begin. What it refuses rests until it is gained, unless that has happened since enter.
func (b *board) admit(f *flight, ok bool, gains uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.admitted = ok
	if e := b.entries[f.key]; e != nil && !ok && e.gains == gains {
		b.refuse(e, true)
	}
}

// leave notes that a pass has returned. Its manifest may have been refused because of it, and is then looked at again.
func (b *board) leave(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	left := b.flights[f.key]
	for i := range left {
		if left[i] == f {
			left = append(left[:i], left[i+1:]...)
			break
		}
	}
	if b.flights[f.key] = left; len(left) == 0 {
		delete(b.flights, f.key)
		delete(b.pardons, f.key)
	}
	e := b.entries[f.key]
	if e == nil {
		return
	}
	if e.holder == f {
		e.holder = nil
		b.free()
	}
	if f.admitted && e.refused {
		b.refuse(e, false)
		b.nudges = append(b.nudges, f.key)
		b.knock()
	}
}

// stuck tells how many passes of a manifest have not returned, if they are so many that no further one may begin; 0 if one may.
func (b *board) stuck(key Key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.flights[key]); n >= max(maxHanging, b.pardons[key]) {
		return n
	}
	return 0
}

// pardon lets a manifest that is stuck have one pass more: it is not what it was when those began that hang.
func (b *board) pardon(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pardons[key] = len(b.flights[key]) + 1
}

// cancel calls the passes of a manifest off.
func (b *board) cancel(key Key, reason error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.flights[key] {
		f.cancelled = true
		f.cancel(reason)
	}
}

// wasCancelled tells whether a pass was called off.
func (b *board) wasCancelled(f *flight) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f.cancelled
}
