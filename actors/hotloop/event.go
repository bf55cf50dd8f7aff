package hotloop

import (
	"strings"
	"time"
)

// Writer is who writes. It is comparable.
type Writer struct {
	// Name is how people know the writer: a controller's name, or user and field manager of somebody else.
	Name string
	// Manifest is what a reconciler of this process reconciles, empty for everybody else.
	Manifest string
}

// Ours tells whether the writer is a reconciler, which alone can be paused.
func (w Writer) Ours() bool { return w.Manifest != "" }

// String names the writer in Events and conditions.
func (w Writer) String() string {
	if w.Ours() {
		return "reconciler " + w.Name + " of " + w.Manifest
	}
	return w.Name
}

// Object is what is written. Name is empty for a creation whose name the server chooses. It is comparable.
type Object struct{ Group, Resource, Namespace, Name string }

// String names the object in Events and conditions.
func (o Object) String() string {
	s := o.Resource
	if o.Group != "" {
		s += "." + o.Group
	}
	switch {
	case o.Name == "" && o.Namespace != "":
		return s + " in " + o.Namespace
	case o.Namespace != "":
		return s + " " + o.Namespace + "/" + o.Name
	}
	return strings.TrimRight(s+" "+o.Name, " ")
}

// EventKind names what happened. New ones go at the end.
type EventKind uint8

// The events.
const (
	// Wrote is a write of an existing object that the API accepted.
	Wrote EventKind = iota + 1
	// Creating is a reconciler about to create an object; it comes before the request, so that a trip can hold it back.
	Creating
	// Refused is a creation that the API refused.
	Refused
	// Failed is the end of an object soon after its reconciler made it, because it was rejected or failed; Writer is the reconciler
	// and Other who ended it.
	Failed
	// Deleted is the same by deletion, by somebody other than the reconciler.
	Deleted
	// Woken is a foreign wake of a reconciler.
	Woken
)

// Event is one thing that happened.
type Event struct {
	Kind   EventKind
	Writer Writer
	Other  Writer
	Object Object
	// Content is the meaning of the object after a write, zero when it is not known. Same is set when the write left the stored
	// version as it was.
	Content uint64
	Same    bool
}

// Reason says why a reconciler was paused; it is the reason of the condition. New ones go at the end.
type Reason uint8

// The reasons.
const (
	NoOpWrites Reason = iota + 1
	WriteRate
	Oscillation
	MutualUndo
	CreateReject
)

var reasonNames = [...]string{"", "NoOpWrites", "WriteRate", "Oscillation", "MutualUndo", "CreateReject"}

// String is the reason in conditions and metrics.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "Unknown"
}

// Trip says that Writer has to pause.
type Trip struct {
	Reason Reason
	// Writer is the reconciler that pauses. Other is the second writer; when there is none it is Writer itself.
	Writer, Other Writer
	Object        Object
	// Count is how many writes, cycles or objects it took.
	Count int
	// At is when it tripped and Until how long it pauses. Strikes counts the trips of this reconciler.
	At, Until time.Time
	Strikes   int
}
