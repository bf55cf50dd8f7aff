package strategy

import "slices"

// SetID names a managed set.
type SetID string

// ReplicaID is the identity of a replica; it is never used again, unlike a name.
type ReplicaID string

// Replica is one replica as it was observed.
type Replica struct {
	ID    ReplicaID
	Name  string
	Shape Shape
}

// Durable is all that is stored about a set, its replicas aside. It can be compared with ==.
type Durable struct {
	// UID tells the set from another of the same name. Generation is that of the spec that was last folded in.
	UID        string
	Generation int64
	// Config is the realized one: what serves.
	Config          Config
	Schedule        Schedule
	Policy          Optional[BurstPolicy]
	Reconfiguration Optional[Reconfiguration]
	Burst           Optional[Burst]
}

// InFlight gives the reconfiguration that is in progress.
func (d Durable) InFlight() (Reconfiguration, bool) {
	r, ok := d.Reconfiguration.Get()
	return r, ok && r.Status == InProgress
}

// State is a managed set as it was read. What is known about it only now, such as hydration, is in Signals.
type State struct {
	ID SetID
	Durable
	Replicas []Replica
	// Taken are names that are in use though no replica counts under them, such as those of replicas on their way out.
	Taken []string
	// NoRoom tells that a replica which was made finds no place, as when its batch had been Exhausted.
	NoRoom bool
}

// Witness gives what a decision about this state has to be guarded by.
func (s State) Witness() Witness { return Witness(s.Durable) }

// count tells how many replicas have the shape.
func (s State) count(shape Shape) int {
	n := 0
	for _, r := range s.Replicas {
		if r.Shape == shape {
			n++
		}
	}
	return n
}

// ids lists all replicas.
func (s State) ids() []ReplicaID {
	ids := make([]ReplicaID, 0, len(s.Replicas))
	for _, r := range s.Replicas {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// Witness is what was stored about a set when something was decided about it. Replicas are not part of it: one that dies must not
// reject the cut-over that would replace it, and creates and drops are harmless when they are repeated.
type Witness Durable

// Holds tells whether the same is still stored.
func (w Witness) Holds(current Durable) bool { return Durable(w) == current }
