// Package deepstack saves goroutines that are about to call deeply from growing their stacks step by step.
//
// A goroutine begins with a few kilobytes of stack. Each time they do not suffice, everything on it is copied to one of twice the size: a
// request of the API does that four times, the last times with some thirty frames, and it did cost one part in twenty of a create.
package deepstack

// room is about what a write of the API needs, in bytes.
const room = 28 << 10

// Reserve makes the stack of the calling goroutine large enough for a request of the API. Called while there is little on the stack, it costs
// half a microsecond; on a stack that is large already, too.
func Reserve() { touch(0) }

//go:noinline
func touch(i int) byte {
	var space [room]byte
	space[i] = 1
	return space[len(space)-1-i]
}
