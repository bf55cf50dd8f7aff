// Package hotloop decides when a reconciler of this process writes in circles and has to pause: it is a pure step from an event to a
// trip, without clock, goroutine or I/O.
//
// # The caller's duties
//
//  1. Feed every write of a reconciler, every write of anybody else to an object that IsWatched names, every wake of a reconciler by a
//     change that is not its own, and every early end of an object that a reconciler made, each with the time at which it happened.
//     Announce a write before it is asked for: its change may be seen before its answer.
//  2. Ask Paused before each pass and each write of a reconciler, and hold back what is paused. Nobody else is ever paused: a person
//     or a foreign client may write what and as often as it likes.
//  3. Give Content as Meaning computes it, which leaves out what every write changes: versions, times, managed fields, order.
//  4. Call Release now and then; it tells which pauses are over.
//
// A Detector is not safe for concurrent use. Its memory is bounded: it forgets what was quiet for longest.
//
// # What trips
//
//   - NoOpWrites: writes that change nothing anybody could mean, again and again.
//   - WriteRate: writes to one object without end, though nothing but the reconciler's own writes wakes it.
//   - Oscillation: one object goes through the same few contents, written by one reconciler.
//   - MutualUndo: two writers each restore what the other replaced.
//   - CreateReject: what the reconciler makes is rejected or fails at once, and it makes the next.
//
// A trip pauses exactly one reconciler, for a time that doubles with each trip and shrinks back to the first after a long quiet spell.
//
// # Glossary
//
// A writer is a reconciler of one manifest, or any other client of the API under its name. The content of an object is a hash of its
// meaning. A cycle is one round through the contents of an oscillation. A foreign wake is one that the reconciler did not cause itself.
package hotloop
