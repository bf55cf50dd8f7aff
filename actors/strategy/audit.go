package strategy

import "strings"

// AuditEvent names what an audit record tells. New ones go at the end.
type AuditEvent uint8

// The events.
const (
	ReplicaCreated AuditEvent = iota + 1
	ReplicaDropped
	ReconfigurationStarted
	ReconfigurationRetargeted
	ReconfigurationFinalized
	ReconfigurationTimedOut
	ReconfigurationExhausted
	ReconfigurationCancelled
	BurstStarted
	BurstFinished
	BurstShed
)

// String is the event as the reason of an Event.
func (e AuditEvent) String() string {
	return nameOf([]string{
		"", "ReplicaCreated", "ReplicaDropped", "ReconfigurationStarted", "ReconfigurationRetargeted", "ReconfigurationFinalized",
		"ReconfigurationTimedOut", "ReconfigurationResourceExhausted", "ReconfigurationCancelled", "BurstStarted", "BurstFinished",
		"BurstShed",
	}, e)
}

// Why a burst finished, and the word for replicas that nobody wants any more: drops have no strategy to name.
const (
	LingerElapsed     = "LingerElapsed"
	NoLongerWarranted = "NoLongerWarranted"
	Retired           = "retired"
)

// Audit is one audit record. It can be compared with ==.
type Audit struct {
	Event AuditEvent
	// Replica is the name of the replica that was created or dropped.
	Replica string
	// Why names the strategies that wanted a replica, or says why it was dropped or a burst finished.
	Why string
	// Forced is set when a cut-over did not wait for hydration.
	Forced bool
}

// String is the record for people.
func (a Audit) String() string {
	words := []string{a.Event.String()}
	if a.Replica != "" {
		words = append(words, a.Replica)
	}
	if a.Forced {
		words = append(words, "forced")
	}
	if a.Why != "" {
		words = append(words, "("+a.Why+")")
	}
	return strings.Join(words, " ")
}
