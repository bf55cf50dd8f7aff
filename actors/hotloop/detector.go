package hotloop

import "time"

// Detector is the state of the breaker. Make it with New.
type Detector struct {
	pairs   *lru[pairKey, pair]
	objects *lru[Object, history]
	writers *lru[Writer, writerState]
	// paused counts the writers whose pause has not been released.
	paused int
}

type pairKey struct {
	writer Writer
	object Object
}

// writerState is what is known of one reconciler.
type writerState struct {
	// wakes counts foreign wakes.
	wakes uint64
	made  made
	// trip is the pause that holds, or the last one; held until it is released.
	trip Trip
	held bool
}

// New makes a detector that knows nothing yet.
func New() *Detector {
	d := &Detector{
		pairs:   newLRU[pairKey, pair](maxPairs),
		objects: newLRU[Object, history](maxObjects),
		writers: newLRU[Writer, writerState](maxWriters),
	}
	d.writers.dropped = func(s *writerState) {
		if s.held {
			d.paused--
		}
	}
	return d
}

// Step takes one event; tripped is set when a reconciler has to pause from now on.
func (d *Detector) Step(now time.Time, e Event) (trip Trip, tripped bool) {
	switch e.Kind {
	case Wrote:
		return d.wrote(now, e)
	case Creating:
		return d.creating(now, e)
	case Refused:
		d.writers.need(e.Writer).made.end(now, Event{Kind: Failed, Other: Writer{Name: "the API server"}, Object: e.Object})
	case Failed, Deleted:
		d.writers.need(e.Writer).made.end(now, e)
	case Woken:
		d.writers.need(e.Writer).wakes++
	}
	return Trip{}, false
}

// IsWatched tells whether the writes of an object and its contents are of interest, whoever writes it: a reconciler wrote it of late.
func (d *Detector) IsWatched(now time.Time, o Object) bool {
	h := d.objects.get(o)
	return h != nil && h.ours && now.Sub(h.last) < quiet
}

// Announce tells that a write is about to be asked for, so that LastWriter knows of it as soon as others see the change.
func (d *Detector) Announce(w Writer, o Object) {
	h := d.objects.get(o)
	if h == nil && w.Ours() {
		h = d.objects.need(o)
	}
	if h != nil {
		h.writer = w
	}
}

// LastWriter is who wrote an object last, or is about to, as far as it was told.
func (d *Detector) LastWriter(o Object) Writer {
	if h := d.objects.get(o); h != nil {
		return h.writer
	}
	return Writer{}
}

// Paused tells until when a writer pauses; false when it does not.
func (d *Detector) Paused(now time.Time, w Writer) (Trip, bool) {
	if d.paused == 0 {
		return Trip{}, false
	}
	s := d.writers.get(w)
	if s == nil || !s.held || !now.Before(s.trip.Until) {
		return Trip{}, false
	}
	return s.trip, true
}

// Forgive ends the pause of a writer now and forgets what it made, as when its manifest is gone.
func (d *Detector) Forgive(now time.Time, w Writer) {
	s := d.writers.get(w)
	if s == nil {
		return
	}
	s.made = made{}
	if s.held && now.Before(s.trip.Until) {
		s.trip.Until = now
	}
	s.trip.Strikes = 0
}

// Release ends the pauses that are over and returns them.
func (d *Detector) Release(now time.Time) []Trip {
	if d.paused == 0 {
		return nil
	}
	var over []Trip
	d.writers.each(func(_ Writer, s *writerState) {
		if s.held && !now.Before(s.trip.Until) {
			s.held = false
			d.paused--
			over = append(over, s.trip)
		}
	})
	return over
}

func (d *Detector) wrote(now time.Time, e Event) (Trip, bool) {
	h := d.objects.get(e.Object)
	if h == nil {
		if !e.Writer.Ours() {
			return Trip{}, false
		}
		h = d.objects.need(e.Object)
	}
	h.touch(now, e.Writer)
	noOp, returned := e.Same, false
	if e.Content != 0 {
		noOp, returned = h.push(e.Writer, e.Content)
	}
	if a, b, yes := h.fighters(); yes {
		return d.fight(now, e.Object, h, a, b)
	}
	if !e.Writer.Ours() {
		return Trip{}, false
	}
	return d.alone(now, e, noOp, returned)
}

// fight pauses one of two writers that undo each other: the one that is ours, or of two of ours the one that sorts last, so that the
// choice is always the same.
func (d *Detector) fight(now time.Time, o Object, h *history, a, b Writer) (Trip, bool) {
	count := h.undone[0].count + h.undone[1].count
	h.clear()
	if !a.Ours() || b.Ours() && (b.Name > a.Name || b.Name == a.Name && b.Manifest > a.Manifest) {
		a, b = b, a
	}
	if !a.Ours() {
		return Trip{}, false
	}
	return d.trip(now, Trip{Reason: MutualUndo, Writer: a, Other: b, Object: o, Count: count})
}

// alone judges what one reconciler writes.
func (d *Detector) alone(now time.Time, e Event, noOp, returned bool) (Trip, bool) {
	p := d.pairs.need(pairKey{e.Writer, e.Object})
	wakes := d.writers.need(e.Writer).wakes
	reason, count := p.wrote(now, wakes, noOp)
	if !noOp {
		if cycles, tripped := p.cycled(wakes, returned); tripped {
			reason, count = Oscillation, cycles
		}
	}
	if reason == 0 {
		return Trip{}, false
	}
	p.clear()
	if h := d.objects.get(e.Object); h != nil {
		h.clear()
	}
	return d.trip(now, Trip{Reason: reason, Writer: e.Writer, Other: e.Writer, Object: e.Object, Count: count})
}

func (d *Detector) creating(now time.Time, e Event) (Trip, bool) {
	m := &d.writers.need(e.Writer).made
	count, over := m.create(now)
	if !over {
		return Trip{}, false
	}
	other, object := m.other, m.object
	*m = made{}
	return d.trip(now, Trip{Reason: CreateReject, Writer: e.Writer, Other: other, Object: object, Count: count})
}

// trip pauses the writer, unless it does already: twice as long as the last time, unless that is long ago.
func (d *Detector) trip(now time.Time, t Trip) (Trip, bool) {
	s := d.writers.need(t.Writer)
	if s.held && now.Before(s.trip.Until) {
		return Trip{}, false
	}
	strikes := s.trip.Strikes
	if now.Sub(s.trip.Until) >= forgiveAfter {
		strikes = 0
	}
	pause := pauseFirst
	for i := 0; i < strikes && pause < pauseLast; i++ {
		pause *= 2
	}
	if !s.held {
		d.paused++
	}
	t.At, t.Until, t.Strikes = now, now.Add(min(pause, pauseLast)), strikes+1
	s.trip, s.held = t, true
	return t, true
}
