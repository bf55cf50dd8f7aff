package lease

import (
	"container/heap"
	"slices"
	"time"
)

// play lets the next thing happen.
func (w *world) play() {
	next := heap.Pop(&w.queue).(happening)
	w.now = next.at
	next.do()
}

// effect sends a write of work.
func (w *world) effect(m *machine, job *work) {
	boot, f := m.boot, job.fence
	w.request(m, func() {
		at := w.manifests[f.Manifest]
		if err := f.Check(at.Record); err != nil {
			w.assert(f.Epoch < at.highest || at.Free(), "%v was refused, at %d of %s", f, at.Epoch, at.Holder)
			w.reached["fenced"]++
			w.reply(m, boot, Fenced{f})
			return
		}
		w.assert(f.Epoch == at.highest && f.Epoch >= at.accepted, "a stale effect was accepted: %v after %d", f, at.accepted)
		at.accepted = f.Epoch
		w.reached["effect"]++
	})
}

// write does what a node asks of the store, and holds it against the rules.
func (w *world) write(m *machine, boot int, a Append) {
	at := w.manifests[a.Write.Manifest]
	if at.Revision != a.Write.Expected {
		w.reached["refused"]++
		w.reply(m, boot, Answered{Write: a.Write, Outcome: Refused})
		w.stream(m, Observed{at.name, at.Stored})
		return
	}
	next := a.Write.Record
	w.assert(CheckNext(at.Record, next) == nil, "%v follows %v", next, at.Record)
	if next.Free() {
		w.releaseRule(at, a)
	} else {
		w.takeRule(at, a)
	}
	at.Stored = Stored{Record: next, Revision: at.Revision + 1}
	w.note("%s: %s %d because %s", at.name, next.Holder, next.Epoch, a.Why)
	w.reply(m, boot, Answered{Write: a.Write, Outcome: Applied, Revision: at.Revision})
	for _, o := range w.nodes {
		w.stream(o, Observed{at.name, at.Stored})
	}
}

// releaseRule: only a holder releases, and never while work runs.
func (w *world) releaseRule(at *truth, a Append) {
	w.assert(!at.Free(), "%s was free", at.name)
	if m := w.holder(at); m != nil && m.work[at.name] != nil {
		w.assert(m.work[at.name].fence.Epoch != at.Epoch, "%s is released in the middle of work", at.name)
	}
	at.takeable, at.stopped = w.now, 0
	if a.Why == BecauseStopping {
		at.stopped = w.now
	}
	w.reached["released "+a.Why.String()]++
}

// takeRule: epochs only go up.
func (w *world) takeRule(at *truth, a Append) {
	next := a.Write.Record
	w.assert(next.Epoch > at.highest, "%s: epoch %d after %d", at.name, next.Epoch, at.highest)
	if m := w.holder(at); m != nil && m.work[at.name] != nil {
		w.reached["overlap "+a.Why.String()]++
	}
	if at.accepted > 0 && at.accepted < at.Epoch {
		w.reached["unused epoch"]++
	}
	at.highest, at.stopped, at.takeable = next.Epoch, 0, w.now
	w.lastMove = w.now
	if w.calm {
		w.moves++
	}
	w.reached["taken "+a.Why.String()]++
}

// holder is the machine whose present boot holds the lease, nil when there is none.
func (w *world) holder(at *truth) *machine {
	for _, m := range w.nodes {
		if m.up && m.id == at.Holder {
			return m
		}
	}
	return nil
}

// look asks the rules of time.
func (w *world) look() {
	w.graceOver()
	w.expire()
	if !w.noGhosts() {
		w.ghosts = w.now
	}
	for _, m := range w.nodes {
		if w.authority.live[m.id] != nil {
			w.assert(w.now-max(m.renewed, w.graced) <= TTL+time.Second, "the session of %s does not run out", m.id)
		}
	}
	for _, name := range w.names() {
		w.holderRule(w.manifests[name])
	}
	w.after(lookEvery, w.look)
}

// expire ends the sessions that have run out.
func (w *world) expire() {
	before := w.authority.sorted()
	if !w.authority.Expire(w.clock.at(w.now)) {
		return
	}
	for _, s := range before {
		if w.authority.live[s.ID] == nil {
			w.expiryRule(s.ID)
		}
	}
	w.feed()
}

// graceOver tells all when a new authority knows enough.
func (w *world) graceOver() {
	if grace := w.clock.at(w.now) < w.authority.grace; grace != w.grace {
		w.grace = grace
		w.feed()
	}
	if w.grace {
		w.graceEnds = w.now
	}
}

// expiryRule: work has ended before the session has, unless the process could not see to it.
func (w *world) expiryRule(id SessionID) {
	w.reached["expired"]++
	for _, m := range w.nodes {
		if m.up && m.id == id && !m.paused && w.now-m.frozen > TTL {
			w.assert(len(m.work) == 0, "%s works on though its session is over", id)
			w.reached["expired alive"]++
		}
	}
	for _, name := range w.names() {
		if at := w.manifests[name]; at.Holder == id {
			at.takeable = w.now
		}
	}
}

// holderRule: what can be taken is taken in time while nothing hinders a node that lives.
func (w *world) holderRule(at *truth) {
	if !at.live || !w.anyGood() {
		return
	}
	within, since := 2*time.Second, max(at.takeable, w.disturbed+1100*time.Millisecond)
	dead := w.holder(at) == nil && !at.Free() && w.believedDead(at.Holder)
	expired := !at.Free() && !dead && w.authority.live[at.Holder] == nil && !w.grace
	if expired {
		since = max(since, w.graceEnds+lookEvery)
	}
	if at.stopped > w.disturbed+2*time.Second && at.stopped > w.ghosts+lookEvery {
		within, since = lookEvery, at.stopped
		w.reached["handed over"]++
	}
	if at.Free() || dead || expired {
		w.assert(w.now-since <= within, "%s has no holder since %v (%v)", at.name, since, at.Holder)
	}
}

// anyGood tells whether there is a node that nothing hinders.
func (w *world) anyGood() bool {
	for _, m := range w.nodes {
		if m.good() {
			return true
		}
	}
	return false
}

func (m *machine) good() bool { return m.up && !m.paused && !m.cut && !m.stopping }

// noGhosts tells whether all live sessions are of nodes that nothing hinders, or that are leaving.
func (w *world) noGhosts() bool {
	for id, g := range w.authority.live {
		if !slices.ContainsFunc(w.nodes, func(m *machine) bool { return m.id == id && (m.good() || m.stopping && g.leaving) }) {
			return false
		}
	}
	return true
}

// believedDead tells whether all nodes that nothing hinders believe that a session is dead.
func (w *world) believedDead(id SessionID) bool {
	for _, m := range w.nodes {
		if m.good() && !m.node.dead[id] {
			return false
		}
	}
	return true
}

// evenRule: each manifest is held by a node that lives, and none has more than its share while another has less.
func (w *world) evenRule() {
	held := map[SessionID]int{}
	for _, m := range w.nodes {
		if m.up && !m.stopping {
			held[m.id] = 0
		}
	}
	for _, name := range w.names() {
		at := w.manifests[name]
		if !at.live {
			continue
		}
		n, ok := held[at.Holder]
		w.assert(ok, "%s is held by %s", name, at.Holder)
		held[at.Holder] = n + 1
	}
	least, most := 1000, 0
	for _, n := range held {
		least, most = min(least, n), max(most, n)
	}
	w.assert(most-least <= 1, "some hold %d and some %d", least, most)
	w.reached["even"]++
}
