package standin

// Point is a place in the life of a stand-in where something can go wrong.
type Point uint8

// The points.
const (
	// AtStart is while Started is handled, AtMessage while a Poke is, AtStop while Stopping is.
	AtStart Point = iota + 1
	AtMessage
	AtStop
	// AtJob is inside a job.
	AtJob
	// AtBind is while a listener asks for its address.
	AtBind
)

// Deed is what goes wrong.
type Deed uint8

// The deeds.
const (
	Panics Deed = iota + 1
	// Exits ends the goroutine instead of returning.
	Exits
	Errs
	CannotBind
	// Blocks waits until the context ends, Wedges until World.Free whatever the context says.
	Blocks
	Wedges
	// Spins is a Wedge that burns a core. It stops virtual time.
	Spins
	// Slow takes most of the time that the child has for a message.
	Slow
)

// slowShare is the part of HangAfter that a Slow deed takes.
const slowShare = 0.8

// place is one point of one child.
type place struct {
	path string
	at   Point
}

// plan is what is to happen at a place, and how often; for ever when times is negative.
type plan struct {
	deed  Deed
	times int
}
