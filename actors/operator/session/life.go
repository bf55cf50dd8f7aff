package session

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
)

// life is what a session knows in one generation of its actor: the next one begins with nothing, under another boot.
type life struct {
	of    *Session
	id    lease.SessionID
	clock supervision.Clock
	began time.Time
	// wake lets the actor carry out what was decided.
	wake func()

	// What follows is guarded by the session's lock.
	node *lease.Node
	// out are decisions that the actor has to carry out, told that it was woken for them.
	out  []lease.Action
	told bool
	// over is set when the actor has ended.
	over bool
	// watch is the last one that was opened.
	watch storage.Feed
	// refused are manifests held for which Start had to say no.
	refused map[string]struct{}
	// asked are the writes of leases that are not answered yet, waiting those of them that have not been sent.
	asked   map[lease.Write]lease.Reason
	waiting []lease.Write
	batches int
	dead    map[lease.SessionID]bool
	live    int
	known   map[string]struct{}
}

func newLife(s *Session, id lease.SessionID, clock supervision.Clock, wake func()) *life {
	return &life{
		of: s, id: id, clock: clock, began: clock.Now(), wake: wake, node: lease.New(id), refused: map[string]struct{}{},
		asked: map[lease.Write]lease.Reason{}, dead: map[lease.SessionID]bool{}, known: map[string]struct{}{},
	}
}

// opened notes a watch; false when the actor has ended, so that nobody would close it.
func (l *life) opened(f storage.Feed) bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if !l.over {
		l.watch = f
	}
	return !l.over
}

// instant is the time by the monotonic clock, which goes on while the process is stopped.
func (l *life) instant() lease.Instant { return l.clock.Now().Sub(l.began) }

// feed lets the node take events, and wakes the actor if there is something to carry out.
func (l *life) feed(events ...lease.Event) {
	for len(events) > 0 {
		some := events[:min(len(events), stepsAtOnce)]
		events = events[len(some):]
		if l.steps(some) {
			l.wake()
		}
	}
}

// steps feeds some events under the lock; it tells whether the actor is to be woken.
func (l *life) steps(events []lease.Event) (wake bool) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for _, e := range events {
		if m, ok := e.(lease.Manifest); ok {
			l.know(m)
		}
		l.out = append(l.out, l.node.Step(l.instant(), e)...)
	}
	return (len(l.out) > 0 || l.again()) && l.tells()
}

// tells notes that the actor is about to be woken; false when it is already, or has ended.
func (l *life) tells() bool {
	if l.told || l.over {
		return false
	}
	l.told = true
	return true
}

// look wakes the actor to hear what the store has to tell.
func (l *life) look() {
	l.of.mu.Lock()
	wake := l.tells()
	l.of.mu.Unlock()
	if wake {
		l.wake()
	}
}

func (l *life) know(m lease.Manifest) {
	if m.Gone {
		delete(l.known, m.Name)
		return
	}
	l.known[m.Name] = struct{}{}
}

// again tells whether somebody may start now who was refused.
func (l *life) again() bool { return len(l.refused) > 0 && l.node.Proven(l.instant()) && !l.of.leaving }

// take gives the decisions to carry out.
func (l *life) take() []lease.Action {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	out := l.out
	l.out, l.told = nil, false
	if !l.again() {
		return out
	}
	for _, manifest := range slices.Sorted(maps.Keys(l.refused)) {
		if f, held := l.node.Holds(manifest); held && !l.node.Busy(manifest) {
			out = append(out, lease.Gained{Fence: f})
			delete(l.refused, manifest)
		} else if !held {
			delete(l.refused, manifest)
		}
	}
	return out
}

// end is what a life leaves to the listeners when its actor ends: nothing is held any more, and all work is called off.
func (l *life) end() []lease.Action {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.over = true
	if l.of.now == l {
		l.of.now = nil
	}
	var out []lease.Action
	for _, manifest := range slices.Sorted(maps.Keys(l.known)) {
		f, held := l.node.Holds(manifest)
		if !held {
			continue
		}
		if l.node.Busy(manifest) {
			out = append(out, lease.Cancel{Fence: f, Why: lease.BecauseUnproven})
		}
		out = append(out, lease.Lost{Fence: f})
	}
	return out
}

// outcast tells that the session was ended, and not by itself.
func (l *life) outcast() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.node.Ended() && !l.of.leaving
}

func (l *life) measure(st *Stats) {
	st.Held, st.Running, st.Manifests = l.node.Held(), l.node.Working(), len(l.known)
	st.Live, st.Dead, st.Proven, st.Waiting = l.live, len(l.dead), l.node.Proven(l.instant()), len(l.asked)
}

// membership are the events of what the store says of sessions.
func (l *life) membership(m storage.Membership) (events []lease.Event) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.live = len(m.Live)
	now := map[lease.SessionID]bool{}
	for _, id := range m.Dead {
		if now[id] = true; !l.dead[id] {
			events = append(events, lease.Verdict{ID: id, Dead: true})
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(l.dead), lease.SessionID.Compare) {
		if !now[id] {
			events = append(events, lease.Verdict{ID: id})
		}
	}
	l.dead = now
	return append(events, m.Sessions)
}

// kindOf is the kind of a manifest.
func kindOf(manifest string) string {
	kind, _, _ := strings.Cut(manifest, "/")
	return kind
}
