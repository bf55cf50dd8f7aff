// Package deepstack saves goroutines that are about to call deeply from growing their stacks step by step.
//
// A goroutine begins with a few kilobytes of stack. Each time they do not suffice, everything on it is copied to one of twice the size: a
// request of the API does that four times, the last times with some thirty frames, and it did cost one part in twenty of a create.
package deepstack

// room is about what a write of the API needs, in bytes; entry what is needed until it has got a goroutine of its own.
const room, entry = 28 << 10, 12 << 10

// Reserve makes the stack of the calling goroutine large enough for a request of the API. Called while there is little on the stack, it costs
// some hundred nanoseconds; on a stack that is large already, nothing.
func Reserve() { touch(0) }

// ReserveEntry makes the stack large enough for the way into a request.
func ReserveEntry() { touchEntry(0) }

// touch needs a large stack to be called, and does nothing with it: filling it would cost more than having it.
//
//go:noinline
func touch(use int) byte {
	if use == 0 {
		return 0
	}
	var space [room]byte
	space[use] = 1
	return space[len(space)-1-use]
}

//go:noinline
func touchEntry(use int) byte {
	if use == 0 {
		return 0
	}
	var space [entry]byte
	space[use] = 1
	return space[len(space)-1-use]
}
