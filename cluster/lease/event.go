package lease

// Event is what a node is told; one of the types below.
type Event interface{ event() }

// Tick lets time pass.
type Tick struct{}

// Renewed is the answer to Renew.
type Renewed struct {
	Seq uint64
	// Ended is set when the authority refused with ErrSessionEnded.
	Ended bool
}

// Sessions are all live sessions, as the authority names them.
type Sessions struct {
	Live []Session
	// Grace is set while the authority is too new to know all: that a session is not named then means nothing.
	Grace bool
}

// Verdict is what membership says of a session. It counts until membership says something else.
type Verdict struct {
	ID   SessionID
	Dead bool
}

// Manifest says that there is a manifest, or that it is gone. It is gone when its finalizers are done, so no work is lost.
type Manifest struct {
	Name string
	Gone bool
}

// Observed is a record as it is stored, read or watched. One that is older than what is known already changes nothing.
type Observed struct {
	Manifest string
	Stored   Stored
}

// Answered is the answer to Append.
type Answered struct {
	Write   Write
	Outcome Outcome
	// Revision is that of the record, if it was Applied.
	Revision Revision
}

// Done says that work has ended, by itself or because it was cancelled.
type Done struct{ Fence Fence }

// Abandoned says that work was given up though it has not ended, and may go on for ever. The lease is released, so that the next work has another
// epoch and whatever the abandoned one still does is refused.
type Abandoned struct{ Fence Fence }

// Fenced says that a write under the fence was refused.
type Fenced struct{ Fence Fence }

// Stop begins a graceful stop.
type Stop struct{}

func (Tick) event()      {}
func (Renewed) event()   {}
func (Sessions) event()  {}
func (Verdict) event()   {}
func (Manifest) event()  {}
func (Observed) event()  {}
func (Answered) event()  {}
func (Done) event()      {}
func (Fenced) event()    {}
func (Stop) event()      {}
func (Abandoned) event() {}

// Outcome is what became of a write. New ones go at the end.
type Outcome uint8

// The outcomes.
const (
	// Unknown: no answer came; the write may have been done, or be done yet.
	Unknown Outcome = iota
	// Applied: it was done.
	Applied
	// Refused: it was not and will not be done. What is stored is to be read, and Observed.
	Refused
)

// Action is what a node has to do; one of the types below.
type Action interface{ action() }

// Renew asks the authority to renew the node's session.
type Renew struct {
	Seq     uint64
	Session Session
}

// Append asks the store to do a write.
type Append struct {
	Write Write
	Why   Reason
}

// Gained says that the node holds a lease: work may be started.
type Gained struct{ Fence Fence }

// Lost says that the node does not hold a lease any more.
type Lost struct{ Fence Fence }

// Cancel calls work off. Done has to follow when it has ended.
type Cancel struct {
	Fence Fence
	Why   Reason
}

// End asks the authority to end the node's session; the last action there is.
type End struct{ Session SessionID }

func (Renew) action()  {}
func (Append) action() {}
func (Gained) action() {}
func (Lost) action()   {}
func (Cancel) action() {}
func (End) action()    {}

// Reason is why a node does something. New ones go at the end.
type Reason uint8

// The reasons.
const (
	// BecauseFree: nobody held the lease.
	BecauseFree Reason = iota + 1
	// BecauseReboot: an earlier boot of this node held it.
	BecauseReboot
	// BecauseDead: membership declared its holder dead.
	BecauseDead
	// BecauseExpired: the session of its holder is not live.
	BecauseExpired
	// BecauseShare: the node holds more than its share.
	BecauseShare
	// BecauseGone: the manifest is gone.
	BecauseGone
	// BecauseStopping: the node stops.
	BecauseStopping
	// BecauseUnproven: the node cannot prove its session.
	BecauseUnproven
	// BecauseTaken: somebody else has the lease.
	BecauseTaken
	// BecauseAbandoned: the work under it was given up.
	BecauseAbandoned
)

// String is the reason for people.
func (r Reason) String() string {
	names := []string{"", "free", "reboot", "dead", "expired", "share", "gone", "stopping", "unproven", "taken", "abandoned"}
	if int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}
