package engine

import (
	"hash/fnv"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Waits of a manifest's actor.
const (
	// maxHanging is how many passes of one manifest may hang before no further one is tried, unless the manifest itself changes; hangLook how
	// often it is looked whether they returned.
	maxHanging, hangLook = 2, 10 * time.Second
	// pauseSlack is how much longer than its pause the job that waits it out may take.
	pauseSlack = 10 * time.Second
	// faultKept is how long the actor of a manifest that had a fault stays, so that its supervisor counts the next one with it.
	faultKept = time.Hour
)

// passJob is the name of the job of a pass.
const passJob = "pass"

// wake tells a manifest's actor that something it reads changed at a revision, 0 for one that no pass has seen. number counts the wakes of
// this manifest.
type wake struct{ revision, number uint64 }

// count tells a manifest's actor nothing but its number: it has all messages before it, or they were lost with an earlier generation of it.
// It is sent to one that asked to be ended too early, and to one whose turn it is.
type count struct{ number uint64 }

// tick tells a manifest's actor that a pass may be due.
type tick struct{}

// manifest is the actor of one manifest.
type manifest struct {
	*Engine
	key Key
	// place is the manifest's own between 0 and 1.
	place float64
	// keepUntil is until when the actor stays although it has nothing to do.
	keepUntil time.Time
	again     bool

	gate *gate
	// flight is the running pass.
	flight *flight
	// number is that of the last wake. late is the newest revision of those since the last pass was launched, which it may have seen yet;
	// blind is set when one of them had none.
	number, late uint64
	blind        bool
	// gone and refused tell what became of the last pass; asked that the actor has asked to be ended.
	gone, refused, asked bool
	// stuck is set when it was told that passes of earlier generations hang.
	stuck bool
	// resting is set while a pause is waited out.
	resting bool
	// disarm cancels the armed tick; armed is when it fires.
	disarm func()
	armed  time.Time
}

// Receive implements supervision.Handler.
func (m *manifest) Receive(ctx supervision.Context, msg any) error {
	now := ctx.Clock().Now()
	switch msg := msg.(type) {
	case supervision.Started:
		m.begin(now)
	case wake:
		m.woken(msg, now)
	case count:
		m.number, m.asked = msg.number, false
	case tick:
		m.armed = time.Time{}
	case supervision.JobDone:
		m.jobDone(ctx, msg, now)
	default:
		return nil
	}
	m.turn(ctx, now)
	return nil
}

// begin makes the gate of a new generation.
func (m *manifest) begin(now time.Time) {
	m.board.reborn(m.key)
	m.gate = newGate(&m.timings, m.place, now)
	if m.hooks.Recall != nil {
		m.gate.recall(m.hooks.Recall(m.key))
	}
	if m.again {
		m.keepUntil = now.Add(faultKept)
	}
}

// woken takes a wake. Whatever the actor has asked for before is void.
func (m *manifest) woken(w wake, now time.Time) {
	made := m.number == 0 && !m.again
	m.number, m.asked = w.number, false
	if made || m.board.stale(m.key, w.revision) {
		return // the wake that an actor is made for is what it begins with
	}
	m.gone, m.refused = false, false
	m.late, m.blind = max(m.late, w.revision), m.blind || w.revision == 0
	m.gate.wake(now)
}

func (m *manifest) jobDone(ctx supervision.Context, done supervision.JobDone, now time.Time) {
	if done.Name == passJob {
		m.finish(done, now)
		return
	}
	m.resting = false
	m.gate.wake(now)
}

// turn starts the pass that is due, rests until one will be, or asks to be ended.
func (m *manifest) turn(ctx supervision.Context, now time.Time) {
	switch {
	case m.gate.running || m.asked:
	case m.gone || m.refused:
		m.retire(time.Time{}, now)
	case m.held(ctx, now):
		m.board.yield(m.key)
	case m.mayBegin(now):
		if m.flight = m.board.claim(m.key); m.flight != nil {
			m.launch(ctx, now)
		}
	default:
		m.board.yield(m.key)
		m.rest(ctx, now)
	}
}

// mayBegin tells whether a pass is due that need not wait for anybody.
func (m *manifest) mayBegin(now time.Time) bool {
	if m.gate.isDue(now) {
		m.gate.hold(m.mustWait(now), now)
	}
	return m.gate.isDue(now)
}

// mustWait is how long a pass that is due has to wait: for an outage to end, or for passes of abandoned actors to return, each of which
// holds a goroutine that nobody can take from it.
func (m *manifest) mustWait(now time.Time) time.Duration {
	if hanging := m.board.stuck(m.key); hanging > 0 {
		m.tellStuck(hanging)
		return hangLook
	}
	m.stuck = false
	return m.outage.admit(now, m.place)
}

// tellStuck says, once, why no pass begins.
func (m *manifest) tellStuck(hanging int) {
	if m.stuck {
		return
	}
	m.stuck = true
	m.hooks.Log.Warn("passes of a manifest do not return: no further one begins until one does, the manifest changes or the process is started anew",
		"controller", m.name, "manifest", m.key.String(), "passes", hanging)
	if m.hooks.Stuck != nil {
		m.hooks.Stuck(m.key, hanging)
	}
}

// held waits a pause out, in a job whose name shows it in the tree. A pause may be forgiven before its job ends.
func (m *manifest) held(ctx supervision.Context, now time.Time) bool {
	if m.hooks.Paused == nil {
		return false
	}
	pause, paused := m.hooks.Paused(m.key)
	if !paused || m.resting {
		return paused
	}
	m.resting = true
	wait, clock := pause.Until.Sub(now), ctx.Clock()
	ctx.Go(supervision.Job{Name: pause.Name, Deadline: wait + pauseSlack, Run: sleeping(clock, wait)})
	return true
}

// rest arms a tick for the next pass. An actor that would rest for longer than it may linger asks to be ended.
func (m *manifest) rest(ctx supervision.Context, now time.Time) {
	at, due := m.gate.due, m.gate.due
	if m.timings.Linger > 0 && m.gate.failures == 0 && !m.resting && due.Sub(now) > m.timings.Linger {
		if at = later(m.gate.ended.Add(m.timings.Linger), m.keepUntil); !now.Before(at) {
			m.retire(due, now)
			return
		}
	}
	if due.Before(at) {
		at = due
	}
	if m.armed.Equal(at) {
		return
	}
	m.wait(ctx, at, now)
}

// wait arms a tick in place of the one that is armed; none for a time that never comes.
func (m *manifest) wait(ctx supervision.Context, at, now time.Time) {
	if m.disarm != nil {
		m.disarm()
	}
	m.armed, m.disarm = at, nil
	if wait := at.Sub(now); wait < never/2 {
		m.disarm = ctx.After(wait, tick{})
	}
}

// retire asks for the end of the actor; due is when its manifest's next pass is.
func (m *manifest) retire(due, now time.Time) {
	m.asked = true
	if m.disarm != nil {
		m.disarm()
		m.disarm, m.armed = nil, time.Time{}
	}
	if due.Sub(now) >= never/2 {
		due = time.Time{}
	}
	m.board.retire(request{key: m.key, number: m.number, due: due, gone: m.gone})
}

// placeOf gives each manifest its place between 0 and 1.
func placeOf(key Key) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key.String()))
	sum := h.Sum64()
	sum ^= sum >> 32
	return float64(uint32(sum*0x9e3779b97f4a7c15>>32)) / (1 << 32)
}
