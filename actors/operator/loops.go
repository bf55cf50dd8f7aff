package operator

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
)

// loops finds operators that store another status at every pass, though nothing but they themselves brings the passes about.
type loops struct {
	kind string
	now  func() time.Time

	mu       sync.Mutex
	detector *hotloop.Detector
}

func newLoops(kind string, now func() time.Time) *loops {
	return &loops{kind: kind, now: now, detector: hotloop.New()}
}

func (l *loops) writer(key Key) hotloop.Writer {
	return hotloop.Writer{Name: l.kind, Manifest: key.String()}
}

// woken notes that a pass is brought about by somebody else.
func (l *loops) woken(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detector.Step(l.now(), hotloop.Event{Kind: hotloop.Woken, Writer: l.writer(key)})
}

// forgive ends the pause of a manifest that is gone: one made again under its name begins anew.
func (l *loops) forgive(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.detector.Forgive(l.now(), l.writer(key))
}

// watch looks at a change that is about to be stored. The change that goes round once too often also says that the manifest pauses.
func (l *loops) watch(key Key, c Change) Change {
	if c.Status == nil || c.Status.Attempts > 0 {
		return c
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	trip, tripped := l.detector.Step(now, hotloop.Event{
		Kind: hotloop.Wrote, Writer: l.writer(key), Content: contentOf(*c.Status),
		Object: hotloop.Object{Resource: l.kind, Namespace: key.Namespace, Name: key.Name},
	})
	if !tripped {
		return c
	}
	status := *c.Status
	status.Phase, status.NextTry = PhaseParked, wall(trip.Until)
	status.Conditions = setCondition(append([]Condition(nil), status.Conditions...), Condition{
		Type: ConditionHotLoop, Status: ConditionTrue, Reason: trip.Reason.String(),
		Message: fmt.Sprintf("the operator stored another status %d times though nothing had changed; it pauses until %s",
			trip.Count, wall(trip.Until).Format(time.RFC3339)),
	}, now)
	c.Status = &status
	return c
}

// contentOf is a hash of what an operator stored.
func contentOf(s Status) uint64 {
	text, _ := json.Marshal(s.Conditions) // it holds nothing that JSON does not
	h := fnv.New64a()
	h.Write(s.Value)
	h.Write(text)
	return h.Sum64()
}

// paused implements engine.Hooks.
func (l *loops) paused(key engine.Key) (engine.Pause, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.detector.Release(now)
	trip, paused := l.detector.Paused(now, l.writer(Key(key)))
	return engine.Pause{Name: ConditionHotLoop + " " + trip.Reason.String(), Until: trip.Until}, paused
}
