package lease

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sizes of a simulation.
const (
	// stormFor is how long things happen, one every stormEvery or so; then all is calm, until calmFor later.
	stormFor, stormEvery, calmFor = 30 * time.Second, 2 * time.Second, 48 * time.Second
	// partingAt is when in the calm one node may stop gracefully; evenBy when all has to be held and even again; nothing moves after.
	partingAt, evenBy = 24 * time.Second, 40 * time.Second
	// lookEvery is how often the rules of time are asked.
	lookEvery = 250 * time.Millisecond
)

// run plays all of a world.
func (w *world) run() {
	w.after(lookEvery, w.look)
	w.after(time.Second, w.storm)
	w.after(stormFor, w.becalm)
	w.after(stormFor+partingAt, w.parting)
	w.after(stormFor+evenBy, w.evenRule)
	for len(w.queue) > 0 && w.queue[0].at <= stormFor+calmFor {
		w.play()
	}
	w.evenRule()
	w.assert(w.moves <= 4*len(w.manifests), "%d leases have moved %d times", len(w.manifests), w.moves)
	w.assert(w.lastMove <= stormFor+evenBy, "a lease moved though nothing happened")
}

// storm lets something happen, again and again.
func (w *world) storm() {
	if w.calm {
		return
	}
	w.deed(w.nodes[w.rng.IntN(len(w.nodes))])
	w.after(time.Duration(w.rng.Int64N(int64(2*stormEvery))), w.storm)
}

func (w *world) deed(m *machine) {
	short := time.Duration(w.rng.IntN(20000)) * time.Millisecond
	switch w.rng.IntN(10) {
	case 0, 1:
		w.crash(m)
		w.after(short, func() { w.start(m) })
	case 2:
		w.crash(m)
	case 3, 4:
		w.pause(m)
		w.after(short, func() { w.resume(m) })
	case 5:
		w.sever(m)
		w.after(short, func() { w.heal(m) })
	case 6:
		w.slander(m)
	case 7:
		w.leave(m)
		w.after(short, func() { w.start(m) })
	case 8:
		w.succeed()
	case 9:
		w.turnover()
		w.start(m)
	}
}

func (w *world) crash(m *machine) {
	if !m.up {
		return
	}
	w.reached["crash"]++
	w.exit(m)
	id := m.id
	if w.rng.IntN(3) > 0 {
		w.after(time.Duration(w.rng.IntN(3000))*time.Millisecond, func() { w.declare(id, true) })
	}
}

// exit ends a process and all that runs in it.
func (w *world) exit(m *machine) {
	w.note("%s is gone", m.id)
	if !m.stopping {
		w.disturb()
	}
	m.up, m.work, m.waiting = false, map[string]*work{}, nil
}

// declare lets membership say of a session that it is dead or not, to all it reaches.
func (w *world) declare(id SessionID, dead bool) {
	w.note("%s is declared dead: %v", id, dead)
	w.disturb()
	for _, m := range w.nodes {
		w.stream(m, Verdict{ID: id, Dead: dead})
	}
	w.reached[fmt.Sprint("declared dead: ", dead)]++
}

// slander declares a living session dead, for a while.
func (w *world) slander(m *machine) {
	if m.up && !m.stopping {
		id := m.id
		m.slandered = w.now
		w.reached["slander"]++
		w.declare(id, true)
		w.after(time.Duration(w.rng.IntN(8000))*time.Millisecond, func() { w.declare(id, m.id != id || !m.up) })
	}
}

func (w *world) pause(m *machine) {
	if m.up && !m.paused {
		w.note("%s is paused", m.id)
		w.disturb()
		m.paused = true
		w.reached["pause"]++
	}
}

// resume lets a process go on. What its work was about to write is written before it knows of anything.
func (w *world) resume(m *machine) {
	if !m.up || !m.paused {
		return
	}
	w.note("%s goes on", m.id)
	w.disturb()
	m.paused, m.frozen = false, w.now
	for _, name := range slices.Sorted(maps.Keys(m.work)) {
		w.effect(m, m.work[name])
	}
	waiting := m.waiting
	m.waiting = nil
	for _, do := range waiting {
		do()
	}
}

func (w *world) sever(m *machine) {
	w.note("%s is cut off", m.id)
	w.disturb()
	m.cut = true
	w.reached["cut"]++
	if id := m.id; m.up && w.rng.IntN(2) == 0 {
		w.after(time.Duration(w.rng.IntN(4000))*time.Millisecond, func() { w.declare(id, m.cut) })
	}
}

func (w *world) heal(m *machine) {
	if !m.cut {
		return
	}
	w.note("%s is reached again", m.id)
	w.disturb()
	m.cut = false
	w.resync(m)
	for _, o := range w.nodes {
		if o.id != (SessionID{}) {
			w.stream(m, Verdict{ID: o.id, Dead: !o.up})
		}
	}
	if m.up {
		w.declare(m.id, false)
	}
}

func (w *world) leave(m *machine) {
	if m.up && !m.stopping && !m.paused {
		w.note("%s stops", m.id)
		w.reached["stop"]++
		m.stopping = true
		w.tell(m, m.boot, Stop{})
	}
}

// succeed gives the authority to somebody who knows nothing of the sessions but who holds what.
func (w *world) succeed() {
	w.note("the authority changes")
	w.reached["authority"]++
	w.disturb()
	var holders []SessionID
	for _, name := range w.names() {
		holders = append(holders, w.manifests[name].Holder)
	}
	w.authority, w.graced = NewAuthority(w.clock.at(w.now), holders...), w.now
	w.feed()
}

// turnover deletes a manifest, or makes it again.
func (w *world) turnover() {
	names := w.names()
	at := w.manifests[names[w.rng.IntN(len(names))]]
	for _, name := range names {
		if one := w.manifests[name]; !one.live && w.rng.IntN(2) == 0 {
			at = one
		}
	}
	at.live, at.takeable = !at.live, w.now
	w.reached[fmt.Sprint("manifest live: ", at.live)]++
	w.note("%s is there: %v", at.name, at.live)
	w.disturb()
	for _, m := range w.nodes {
		w.stream(m, Manifest{Name: at.name, Gone: !at.live})
	}
}

// becalm ends everything that hinders anybody. At least one node lives on.
func (w *world) becalm() {
	w.note("all is calm")
	w.calm = true
	w.disturb()
	for i, m := range w.nodes {
		w.resume(m)
		w.heal(m)
		if !m.up && (i == 0 || w.rng.IntN(2) == 0) {
			w.start(m)
		}
	}
	for _, m := range w.nodes {
		if m.id != (SessionID{}) && (m.up || w.rng.IntN(2) == 0) {
			w.declare(m.id, !m.up)
		}
	}
}

// parting lets one node stop gracefully in the calm, if others are left.
func (w *world) parting() {
	up := slices.DeleteFunc(slices.Clone(w.nodes), func(m *machine) bool { return !m.up || m.stopping })
	if len(up) > 1 && w.rng.IntN(2) == 0 {
		w.reached["parting"]++
		w.leave(up[w.rng.IntN(len(up))])
	}
}

// begin lets a process reconcile whatever it may, now and then.
func (w *world) begin(m *machine) {
	for _, name := range w.ordered {
		if m.node.mine[name] != nil && (Score(m.name, name)+uint64(w.now/TickEvery))%4 == 0 {
			w.work(m, name)
		}
	}
}

func (w *world) work(m *machine, name string) {
	fence, ok := m.node.Start(m.clock.at(w.now), name)
	if !ok {
		return
	}
	w.assert(m.work[name] == nil, "%s begins %s twice", m.id, name)
	job := &work{fence: fence}
	m.work[name] = job
	w.reached["work"]++
	w.going(m, m.boot, job, 1+int(w.order%6))
}

// going is work that writes at every turn, until it is done or called off.
func (w *world) going(m *machine, boot int, job *work, turns int) {
	if !m.up || m.boot != boot {
		return
	}
	if m.paused {
		m.waiting = append(m.waiting, func() { w.going(m, boot, job, turns) })
		return
	}
	if job.stop || turns == 0 {
		delete(m.work, job.fence.Manifest)
		w.step(m, Done{job.fence})
		return
	}
	w.effect(m, job)
	w.after(time.Duration(200+w.order%600)*time.Millisecond, func() { w.going(m, boot, job, turns-1) })
}
