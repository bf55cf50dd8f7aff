// Package engine is the drive loop of every operator: one actor per manifest, woken by what its source says has changed.
//
// It knows nothing of where manifests are stored or what a pass does. A Source tells which manifests there are and what wakes them, Hooks
// run the passes and may hold them back, by a lease for instance. New puts them together, and Spec is the supervised subtree:
//
//	<name>
//	├─ manifests    pool, one actor per manifest that has something to do
//	└─ dispatcher   takes wakes from the source and hands them to the actors
//
// # What the engine promises
//
//   - The first wake after a quiet spell starts a pass at once; what follows within the debounce window becomes one more pass.
//   - At most one pass of a manifest runs and at most one is pending; there is one requeue slot.
//   - A pass sees everything that was written before it began. A wake by an older change is dropped.
//   - Without any change a pass runs once per resync, and a wake that was missed is found within the fallback.
//   - A failed pass is retried on a growing wait that any success resets. Wakes may cut that wait down to the retry floor.
//   - A pass that panics or outlives its deadline is a fault of its manifest's actor alone, which is restarted and parked by the policy
//     of the catalog.
//   - While nobody answers, one pass in a second looks for all.
//   - A manifest whose lease is not held has no pass, and costs no more than its entry in a map.
//   - A manifest at rest has no actor and no timer, if the Timings say that actors do not linger.
//
// An Engine is put together by New(name, source, hooks, timings, limits). Its Spec is the subtree; Cancel(key, reason) calls the running
// pass of a manifest off, Gained(key) and Wake(key) bring the next one about, and Stats looks at it all.
//
// # The caller's duties
//
// Everything of Source and Hooks may be called from several goroutines. Take, Has, Keys, Recall, Pause, Ended and Fault are called while an
// actor handles a message and must not block; Sync, Start, Reconcile and Done are called by jobs.
package engine
