package storage

import "slices"

// guestFeed is a feed at the host; what it has told and nobody has taken yet is kept by key, the last state of each. It is guarded by the lock
// of its guest.
type guestFeed struct {
	of     *guest
	id     uint64
	notify func()
	// at is the revision up to which the host has told everything.
	at      Revision
	changes []Change
	place   map[string]int
	err     error
}

// watch opens a feed; whether the host can tell from there on is known later.
func (g *guest) watch(from Revision, filter Filter, notify func()) (source, error) {
	f := &guestFeed{of: g, notify: notify, at: from, place: map[string]int{}}
	g.mu.Lock()
	g.seq++
	f.id = g.seq
	g.feeds[f.id] = f
	g.mu.Unlock()
	g.send(request{Op: opWatch, Feed: f.id, From: from, Filter: filter}, func(r reply) func() {
		f.err = r.Fault.err()
		return f.notify
	})
	return f, nil
}

// add notes what the host tells. at is 0 when there is more to come up to that revision.
func (f *guestFeed) add(changes []Change, at Revision) {
	for _, c := range changes {
		key := c.mark() + c.key()
		if i, there := f.place[key]; there {
			f.changes[i] = Change{} // it is told at the place of its last change
		}
		f.place[key] = len(f.changes)
		f.changes = append(f.changes, c)
	}
	f.at = max(f.at, at)
}

func (c Change) mark() string {
	if c.Manifest != "" {
		return leaseMark
	}
	return objectMark
}

// take implements source.
func (f *guestFeed) take() ([]Change, Revision, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	changes := slices.DeleteFunc(f.changes, func(c Change) bool { return c.Revision == 0 })
	f.changes, f.place = nil, map[string]int{}
	return changes, f.at, f.err
}

// Close implements source.
func (f *guestFeed) Close() {
	f.of.mu.Lock()
	delete(f.of.feeds, f.id)
	f.of.mu.Unlock()
	f.of.send(request{Op: opUnwatch, Feed: f.id}, nil)
}

// guestSessions is a watch of sessions; it is guarded by the lock of its guest.
type guestSessions struct {
	of     *guest
	notify func()
	fresh  bool
}

// WatchSessions implements role.
func (g *guest) WatchSessions(notify func()) SessionFeed {
	w := &guestSessions{of: g, notify: notify}
	g.mu.Lock()
	w.fresh = g.knows
	g.watchers = append(g.watchers, w)
	g.mu.Unlock()
	notify()
	return w
}

// Take implements SessionFeed.
func (w *guestSessions) Take() (Membership, bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if !w.fresh {
		return Membership{}, false
	}
	w.fresh = false
	m := w.of.members
	m.Live, m.Dead = slices.Clone(m.Live), slices.Clone(m.Dead)
	return m, true
}

// Close implements SessionFeed.
func (w *guestSessions) Close() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.watchers = slices.DeleteFunc(w.of.watchers, func(o *guestSessions) bool { return o == w })
}
