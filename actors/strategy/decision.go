package strategy

import "strings"

// Create makes a replica. Where its name is in use already it has been made before, and nothing is to be done.
type Create struct {
	Name  string
	Shape Shape
	// Reasons are those of the strategies that want the shape, in order of precedence; the first is the one that counts.
	Reasons []Reason
}

// Drop removes a replica. Where the ID is gone nothing is to be done.
type Drop struct {
	ID    ReplicaID
	Name  string
	Shape Shape
}

// Batch is what is to be done about one set: all of it or nothing.
type Batch struct {
	Set SetID
	// Expected guards every decision of the batch.
	Expected Witness
	Update   StateWrite
	Creates  []Create
	Drops    []Drop
}

// Empty tells whether there is nothing to do.
func (b Batch) Empty() bool { return b.Update.Empty() && len(b.Creates)+len(b.Drops) == 0 }

// Audits lists the audit records to be stored with the batch.
func (b Batch) Audits() []Audit {
	audits := b.Update.Audits()
	for _, c := range b.Creates {
		audits = append(audits, Audit{Event: ReplicaCreated, Replica: c.Name, Why: c.why()})
	}
	for _, d := range b.Drops {
		audits = append(audits, Audit{Event: ReplicaDropped, Replica: d.Name, Why: Retired})
	}
	return audits
}

func (c Create) why() string {
	var names []string
	for _, reason := range c.Reasons {
		names = append(names, reason.String())
	}
	return strings.Join(names, "; ")
}

// Outcome is what became of a batch. New ones go at the end.
type Outcome uint8

// The outcomes.
const (
	// Applied: all of it was done.
	Applied Outcome = iota + 1
	// Rejected: what is stored is not what was expected, or nothing may be written now. Nothing was done.
	Rejected
	// Exhausted: there is no room for the replicas. Nothing was done.
	Exhausted
)

// String is the outcome for people.
func (o Outcome) String() string {
	return nameOf([]string{"", "Applied", "Rejected", "ResourceExhausted"}, o)
}
