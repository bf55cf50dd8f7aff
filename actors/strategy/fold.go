package strategy

import (
	"errors"
	"fmt"
	"time"
)

// Limits of a spec.
const (
	// DefaultTimeout is how long a reconfiguration may take unless the spec says otherwise.
	DefaultTimeout = 24 * time.Hour
	// MaxReplicationFactor bounds how many replicas a set may want.
	MaxReplicationFactor = 1000
)

// ErrSpec is returned when a spec is refused; what is wrong with it follows.
var ErrSpec = errors.New("invalid spec of a replica set")

// Spec is what a user declares about a set.
type Spec struct {
	// Generation goes up with each change of the spec.
	Generation int64
	Config     Config
	Schedule   Schedule
	Policy     Optional[BurstPolicy]
	Wait       Wait
}

// Wait says how a change of shape goes about: until the target is ready, but not for ever.
type Wait struct {
	// Timeout is how long to wait, DefaultTimeout when absent. Zero with Commit changes at once, without an overlap.
	Timeout   Optional[time.Duration]
	OnTimeout OnTimeout
}

// WaitFor waits for d and then gives up.
func WaitFor(d time.Duration) Wait { return Wait{Timeout: Some(d), OnTimeout: Rollback} }

// Validate tells what is wrong with a spec, whatever the state of its set.
func (s Spec) Validate() error {
	policy, burst := s.Policy.Get()
	var what string
	switch {
	case s.Config.Shape.Size == "":
		what = "the size is empty"
	case s.Config.ReplicationFactor < 0 || s.Config.ReplicationFactor > MaxReplicationFactor:
		what = fmt.Sprintf("the replication factor %d is not within 0 and %d", s.Config.ReplicationFactor, MaxReplicationFactor)
	case s.Config.Shape.Logging.Interval < 0:
		what = "the logging interval is negative"
	case s.Schedule.HydrationEstimate < 0:
		what = "the hydration estimate is negative"
	case s.Wait.Timeout.Or(0) < 0:
		what = "the timeout is negative"
	case s.Wait.OnTimeout > Commit:
		what = "what to do at the timeout is neither Rollback nor Commit"
	case burst && policy.Size == "":
		what = "the burst size is empty"
	case burst && policy.Size == s.Config.Shape.Size:
		what = fmt.Sprintf("the burst size is the size of the set, %s: choose another", policy.Size)
	case burst && policy.Linger.Or(0) < 0:
		what = "the linger of the burst is negative"
	case burst && s.Schedule.OnRefresh:
		what = "a hydration burst and a refresh schedule exclude each other"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSpec, what)
}

// FoldKind is what a change of a spec came to. New ones go at the end.
type FoldKind uint8

// The kinds.
const (
	// Unchanged: nothing about the realized config is to change.
	Unchanged FoldKind = iota
	// Direct: only the number of replicas changed, at once.
	Direct
	// Started: a reconfiguration began.
	Started
	// Retargeted: the reconfiguration in progress goes elsewhere now, or until another deadline.
	Retargeted
	// CancelledBack: the spec is what is realized again, and the reconfiguration in progress is over.
	CancelledBack
)

// String is the kind for people.
func (k FoldKind) String() string {
	return nameOf([]string{"Unchanged", "Direct", "Started", "Retargeted", "Cancelled"}, k)
}

// Folded is a durable state with a spec in it, to be stored by compare-and-append against the state it was made from.
type Folded struct {
	Kind    FoldKind
	Durable Durable
	Audit   Optional[Audit]
}

// Begin gives the first state of a new set, which realizes its spec at once: there is nothing that serves yet.
func Begin(uid string, spec Spec) (Durable, error) {
	if err := spec.Validate(); err != nil {
		return Durable{}, err
	}
	return Durable{UID: uid, Generation: spec.Generation, Config: spec.Config, Schedule: spec.Schedule, Policy: spec.Policy}, nil
}

// Fold takes a changed spec into the state. It only writes down what is wanted and returns at once; whoever asked may go. A generation
// that was folded before, or is older, changes nothing.
func Fold(d Durable, spec Spec, now Time) (Folded, error) {
	if spec.Generation <= d.Generation {
		return Folded{Durable: d}, nil
	}
	if err := spec.Validate(); err != nil {
		return Folded{}, err
	}
	d.Generation, d.Schedule, d.Policy = spec.Generation, spec.Schedule, spec.Policy
	if spec.Schedule.OnRefresh && spec.Config.Shape == d.Config.Shape {
		spec.Config.ReplicationFactor = d.Config.ReplicationFactor // The schedule decides it.
	}
	current, busy := d.InFlight()
	switch {
	case busy && spec.Config == d.Config:
		current.Status = Cancelled
		return d.record(CancelledBack, current, ReconfigurationCancelled), nil
	case busy:
		return retarget(d, current, spec, now), nil
	case spec.Config == d.Config:
		return Folded{Durable: d}, nil
	case spec.Config.Shape == d.Config.Shape:
		d.Config.ReplicationFactor = spec.Config.ReplicationFactor
		return Folded{Kind: Direct, Durable: d}, nil
	}
	return d.record(Started, spec.reconfiguration(now), ReconfigurationStarted), nil
}

// retarget changes the reconfiguration in progress. With the same target only its deadline may move, which still counts from the start.
func retarget(d Durable, current Reconfiguration, spec Spec, now Time) Folded {
	next := spec.reconfiguration(now)
	if current.Target == spec.Config {
		next = spec.reconfiguration(current.Started)
		next.Generation = current.Generation
	}
	if next == current {
		return Folded{Durable: d}
	}
	return d.record(Retargeted, next, ReconfigurationRetargeted)
}

// reconfiguration is the record of a change to the spec that was asked for at started.
func (s Spec) reconfiguration(started Time) Reconfiguration {
	deadline := started.After(s.Wait.Timeout.Or(DefaultTimeout))
	return Reconfiguration{
		Generation: s.Generation, Target: s.Config, Started: started, Deadline: deadline, OnTimeout: s.Wait.OnTimeout, Status: InProgress,
	}
}

func (d Durable) record(kind FoldKind, r Reconfiguration, event AuditEvent) Folded {
	d.Reconfiguration = Some(r)
	return Folded{Kind: kind, Durable: d, Audit: Some(Audit{Event: event})}
}
