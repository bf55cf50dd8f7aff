package strategy

import (
	"fmt"
	"time"
)

// OnTimeout is what becomes of a reconfiguration whose target is not hydrated at the deadline.
type OnTimeout uint8

// The choices.
const (
	// Rollback keeps the realized config and gives up the target. It is the default.
	Rollback OnTimeout = iota
	// Commit cuts over to the target although it is not hydrated.
	Commit
)

// String is the choice as the API has it.
func (o OnTimeout) String() string { return nameOf([]string{"Rollback", "Commit"}, o) }

// Status is where a reconfiguration is. New ones go at the end.
type Status uint8

// The statuses. All but InProgress are final: the record stays as a tombstone that tells what became of the last change.
const (
	InProgress Status = iota + 1
	// Finalized: the target is realized.
	Finalized
	// TimedOut: the deadline passed and the realized config was kept.
	TimedOut
	// ResourceExhausted: the replicas could not be made and the realized config was kept.
	ResourceExhausted
	// Cancelled: the spec was changed back.
	Cancelled
)

// String is the status as the API has it.
func (s Status) String() string {
	return nameOf([]string{"", "InProgress", "Finalized", "TimedOut", "ResourceExhausted", "Cancelled"}, s)
}

// Reconfiguration is the record of the last graceful change of a set.
type Reconfiguration struct {
	// Generation is that of the spec that asked for the target.
	Generation int64
	Target     Config
	// Started is when the target was asked for, Deadline when OnTimeout is to be done.
	Started, Deadline Time
	OnTimeout         OnTimeout
	Status            Status
}

// String is the record for people.
func (r Reconfiguration) String() string {
	return fmt.Sprintf("%s to %s, deadline %s, then %s", r.Status, r.Target, r.Deadline, r.OnTimeout)
}

// Burst is the record of a hydration burst.
type Burst struct {
	// Size is the size class of the burst's replica.
	Size string
	// HydratedAt is when a steady replica was first seen hydrated; the linger counts from there.
	HydratedAt Optional[Time]
	// Shed marks a burst that was given up because resources ran out. The record then stays, and wants no replica, until the need has
	// passed, so that the burst does not come back at each tick only to be shed again.
	Shed bool
}

// BurstPolicy asks for one more replica of another size while no steady replica is hydrated.
type BurstPolicy struct {
	// Size is the size class of that replica; it differs from the set's.
	Size string
	// Linger is how long it stays after a steady replica is hydrated; absent means the default of the settings.
	Linger Optional[time.Duration]
}

// Schedule says when a set has replicas.
type Schedule struct {
	// OnRefresh keeps a replica only while something of the set is to be refreshed; otherwise there are always ReplicationFactor.
	OnRefresh bool
	// HydrationEstimate is how long before a refresh the replica is needed.
	HydrationEstimate time.Duration
}

func nameOf[N ~uint8](names []string, n N) string {
	if int(n) < len(names) {
		return names[n]
	}
	return "Unknown"
}
