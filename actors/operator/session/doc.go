// Package session is the actor through which a process takes part in the work on a store: it holds the process's session and the leases of the
// manifests that are this process's to tend.
//
// What is decided is decided by package lease; here it is fed with what happens and what it decides is carried out. There is one Session for
// each process and store, however many kinds of manifests it tends.
//
// # The caller's duties
//
//  1. Listen for each kind, then run the actor (Spec) as a child that starts before those who work and stops after them.
//  2. Ask Start before each pass and write under the fence it gives. Tell Done when the pass has really ended, also when it was called off,
//     and Fenced when a write was refused.
//  3. Ask May before an effect that nothing compares with the epoch. A process that was stopped learns of it by that.
//  4. To stop gracefully, Leave, wait for Left, and only then stop the tree. Left comes within lease.StopWait and a little, unless the store
//     does not answer: bound the wait.
//
// Start, Done, Abandon, Fenced, May, Leave and Stats may be called from anywhere, and never wait for anything but a short lock. Listeners are called by
// the actor, one at a time, and must not block.
package session
