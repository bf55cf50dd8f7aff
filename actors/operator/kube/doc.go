// Package kube runs controllers on the API's objects: a reconciler becomes one actor per manifest, woken by exactly the changes it declares to
// read.
//
// A Controller names its Reconciler, the kind of its manifests and its Reads. Spec makes the supervised subtree of it, on package engine:
//
//	controllers/reporter   tells on objects how their reconcilers do
//	controllers/<name>
//	├─ manifests    pool, one actor per manifest
//	├─ kinds        waits until the kinds it reads are served
//	└─ dispatcher   wakes the manifests that changes in the cache concern
//
// # Duties of a Reconciler
//
//  1. Reconcile brings one manifest closer to what it declares and returns. It is called again; it need not finish.
//  2. It writes only when something differs: at rest, nothing moves.
//  3. It reads only the kinds its controller declares, from the cache; what it reads is shared and never changed.
//  4. It honours its context. A pass that outlives its deadline is a fault of its actor, of no other.
//  5. It writes with the context of its pass, through a client that goes through Breaker.Guard: that is how the breaker knows it.
//  6. It keeps nothing in memory that it could not lose: actors are restarted.
//
// # What it can rely on
//
//   - The first change after a quiet spell starts a pass at once; what follows within the debounce window becomes one more pass.
//   - At most one pass of a manifest runs and at most one is pending.
//   - A pass sees everything this process wrote before it began, its own last pass included.
//   - Without any change, a pass runs once per fallback, so a missed wake heals.
//   - A failed pass is retried on a doubling wait that any success resets. Changes may cut that wait down to a second.
//   - A conflict with another writer is no failure: the pass is run again on the newer state.
//   - A manifest whose pass panics or hangs waits alone, parked in the end; the object says so by a condition and Events, and a change of
//     it brings the next try at once.
//   - A reconciler that writes in circles pauses; others go on, and the object says who writes against whom.
//   - While the store or the API is away, one pass in a second looks for all.
//   - A kind that is not served yet holds up the controllers that read it, and starts them within a second of its appearance.
//   - The actor of a vanished manifest ends. A manifest made again under the same name gets a new one.
//
// Passes of different manifests run in parallel; a Reconciler is shared by them and must be safe for that.
package kube
