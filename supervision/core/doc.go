// Package core decides what happens to the children of a supervisor: it is a pure step
// from an event to actions, without clock, goroutine or I/O.
//
// The caller's duties:
//
//  1. Feed every event with the time at which it happened; one Group belongs to one
//     supervisor and is not safe for concurrent use.
//  2. Carry out the actions in the order given, before feeding the next event.
//  3. Answer each StartChild with ChildReady, ChildFault or ChildExited (a start that is not
//     acknowledged in time is a ChildFault of kind Hang), and each StopChild with
//     ChildExited, or StopElapsed after the child's StopTimeout; events of an older
//     generation are ignored.
//
// Glossary: a generation is one life of a child; an intensity is how many restarts a
// supervisor bears within a window; a parked child is retried at the capped back-off
// while its siblings go on; an abandoned one is fenced and left behind.
package core
