package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// ManifestState is one manifest as a pass sees it, and what the pass may change of it. It is the pass's own: no other goroutine may use
// it, and nothing of it may be kept.
type ManifestState[S Specification] struct {
	// Manifest is a copy. To change it is a failure of the pass (ErrManifestChanged).
	Manifest Manifest[S]
	State
}

// State is what a pass may change: status, conditions and finalizers. All of it is stored in one write after the pass, and only if
// something differs.
type State struct {
	now        time.Time
	deleting   bool
	attempts   int
	fence      lease.Fence
	value      json.RawMessage
	conditions []Condition
	finalizers []string
}

// newState is the state of a record before a pass. That it was paused for writing in circles is over.
func newState(r Record, fence lease.Fence, now time.Time) State {
	s := State{
		now: now, deleting: r.Deleting(), attempts: r.Status.Attempts, fence: fence, value: r.Status.Value,
		conditions: slices.Clone(r.Status.Conditions), finalizers: slices.Clone(r.Finalizers),
	}
	s.RemoveCondition(ConditionHotLoop)
	return s
}

// Status reads what was stored by SetStatus last into a variable, which is left as it is when nothing was.
func (s *State) Status(into any) error { return Status{Value: s.value}.Into(into) }

// SetStatus replaces what is stored as status, when the pass has ended well. An error is returned when JSON cannot hold the value, or it is
// too large; the status is as before then. Leave out what differs at every pass, such as times: it would be written at every pass.
func (s *State) SetStatus(v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot serialise the status: %w", err)
	}
	if len(value) > maxValue {
		return fmt.Errorf("cannot store a status of %d bytes: %w", len(value), ErrTooLarge)
	}
	s.value = value
	return nil
}

// Conditions are the conditions as they are now; the slice is the caller's.
func (s *State) Conditions() []Condition { return slices.Clone(s.conditions) }

// Condition finds the condition of a type.
func (s *State) Condition(kind string) (Condition, bool) { return findCondition(s.conditions, kind) }

// SetCondition puts a condition in place of the one of its type. Its Since stays while its Status does.
func (s *State) SetCondition(c Condition) { s.conditions = setCondition(s.conditions, c, s.now) }

// RemoveCondition takes a condition away.
func (s *State) RemoveCondition(kind string) {
	s.conditions = slices.DeleteFunc(s.conditions, func(c Condition) bool { return c.Type == kind })
}

// AddFinalizer lets the manifest stay, when it is deleted, until RemoveFinalizer. On a manifest that is being deleted it does nothing.
// Operators with a Finalize method need it only for steps of their own.
func (s *State) AddFinalizer(name string) {
	if !s.deleting && name != "" && !slices.Contains(s.finalizers, name) {
		s.finalizers = append(s.finalizers, name)
	}
}

// RemoveFinalizer lets the manifest go, when it is deleted and nothing else holds it.
func (s *State) RemoveFinalizer(name string) {
	if name != finalizerName {
		s.finalizers = slices.DeleteFunc(s.finalizers, func(f string) bool { return f == name })
	}
}

// Deleting tells whether the manifest's deletion was asked for.
func (s *State) Deleting() bool { return s.deleting }

// Attempts is how many passes have failed since one ended well, in whichever process.
func (s *State) Attempts() int { return s.attempts }

// Fence is the lease under which the pass runs: who holds it, and the epoch, which goes up with each holder. What an operator does outside
// the store is safe from late passes if what it does it to refuses lower epochs than it has seen.
func (s *State) Fence() (holder string, epoch uint64) {
	return holderName(s.fence.Holder), s.fence.Epoch
}
