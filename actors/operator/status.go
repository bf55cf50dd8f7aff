package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Phase says in one word how a manifest is. New ones go at the end of the list.
type Phase string

// The phases. Reconciling is never stored: it is what a reader is told while a pass runs.
const (
	// PhasePending: no pass of it has ended yet.
	PhasePending Phase = "Pending"
	// PhaseReconciling: a pass runs in the process that was asked.
	PhaseReconciling Phase = "Reconciling"
	// PhaseReady: the last pass ended well.
	PhaseReady Phase = "Ready"
	// PhaseRetrying: the last pass failed; NextTry is when the next one begins.
	PhaseRetrying Phase = "Retrying"
	// PhaseParked: it panicked or hung too often, or wrote in circles, and is left alone until NextTry or its next change.
	PhaseParked Phase = "Parked"
	// PhaseDeleting: its deletion was asked for and finalizers hold it.
	PhaseDeleting Phase = "Deleting"
)

// Status is how a manifest is and what its operator says of it.
type Status struct {
	Phase Phase `json:"phase"`
	// ObservedGeneration and ObservedHash are those of the specification that the last pass saw.
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	ObservedHash       string `json:"observedHash,omitempty"`
	// Attempts is how many passes have failed since one ended well, LastError what the last of them failed of, NextTry when the next
	// one begins: whoever takes the manifest over goes on from there.
	Attempts  int       `json:"attempts,omitempty"`
	LastError string    `json:"lastError,omitempty"`
	NextTry   time.Time `json:"nextTry,omitzero"`
	// Holder and Epoch are the lease under which the status was written.
	Holder     string      `json:"holder,omitempty"`
	Epoch      uint64      `json:"epoch,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Value is what the operator stored by SetStatus.
	Value json.RawMessage `json:"value,omitempty"`
}

// Into reads what the operator stored into a variable; it is left as it is when nothing was stored yet.
func (s Status) Into(v any) error {
	if len(s.Value) == 0 {
		return nil
	}
	if err := json.Unmarshal(s.Value, v); err != nil {
		return fmt.Errorf("cannot read the status: %w", err)
	}
	return nil
}

// Condition finds the condition of a type.
func (s Status) Condition(kind string) (Condition, bool) { return findCondition(s.Conditions, kind) }

// ConditionStatus is what is known of a condition.
type ConditionStatus string

// What may be known of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// ConditionHotLoop is the type of the condition that says that an operator wrote in circles and pauses.
const ConditionHotLoop = "HotLoop"

// Condition is one thing that is true of a manifest or not.
type Condition struct {
	// Type names it in CamelCase; a manifest has one condition of a type at most.
	Type   string          `json:"type"`
	Status ConditionStatus `json:"status"`
	// Reason is one CamelCase word for programs, Message a sentence for people.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when Status became what it is. It is filled in when it is zero.
	Since time.Time `json:"since,omitzero"`
}

func findCondition(all []Condition, kind string) (Condition, bool) {
	i := slices.IndexFunc(all, func(c Condition) bool { return c.Type == kind })
	if i < 0 {
		return Condition{}, false
	}
	return all[i], true
}

// setCondition puts a condition among the others, in place of the one of its type.
func setCondition(all []Condition, c Condition, now time.Time) []Condition {
	i := slices.IndexFunc(all, func(o Condition) bool { return o.Type == c.Type })
	if i >= 0 && all[i].Status == c.Status && c.Since.IsZero() {
		c.Since = all[i].Since
	}
	if c.Since.IsZero() {
		c.Since = now
	}
	c.Since = wall(c.Since)
	if i < 0 {
		return append(all, c)
	}
	all[i] = c
	return all
}

// wall is a time as it is stored: without the monotonic reading and the zone of who read it.
func wall(t time.Time) time.Time { return t.UTC().Round(0) }

// says tells whether two statuses say the same. Under which lease they were written does not count: a takeover alone is not worth a write.
func (s Status) says(o Status) bool {
	s.Holder, s.Epoch = o.Holder, o.Epoch
	return bytes.Equal(s.canonical(), o.canonical())
}

func (s Status) canonical() []byte {
	text, err := json.Marshal(s)
	if err != nil { // the value was checked when it was set, and nothing else can fail
		return nil
	}
	return text
}
