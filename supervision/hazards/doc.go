// Package hazards keeps the reasons why supervision stands on a kernel of its own: each test
// shows one behaviour of the pinned protoactor-go that a supervisor cannot be built on.
//
// There is no code here. A test that fails after an upgrade of the library says that a
// reason is gone, and names it.
package hazards
