// Package supervision runs every long-lived part of the product as an actor under one
// explicit tree, and decides by declared policy what happens to it on each fault.
//
// # The caller's duties
//
//  1. Describe the tree as Specs (rows of the catalog) and Start it on a System. Start
//     returns once every child has acknowledged, left to right; Stop takes the tree down
//     newest first, one child at a time, and reports what would not go.
//  2. Never block in Receive. Blocking work goes into Context.Go and comes back as a
//     JobDone message to the generation that started it. A job has a Deadline, or beats
//     (BeatWithin), or says that it is Endless. The end of an Endless job also comes as
//     JobDone: return its error, or the child goes on without its job.
//  3. Build only the struct in Spec.Start, which may be called many times; open resources
//     when Started arrives and release them when Stopping arrives, which it also does after
//     a fault. What is tied to Context.Context ends by itself.
//  4. Make messages idempotent or acknowledged: a restart loses the mailbox. A message that
//     nobody takes is a dead letter; Send then returns false.
//  5. Check the Fence before an effect that must not come from an abandoned generation. The
//     contexts of a generation and its jobs carry it: pass them on, and call CheckFence where
//     the effect happens.
//  6. Return a BindError for an address that cannot be had, ErrDone for a normal end, and
//     any other error only if this generation should not go on.
//  7. When Done yields, the tree has ended or is about to: report the reason and call Stop.
//
// # What happens on a fault
//
// The guard turns whatever a handler does into one of four kinds (Panic, Hang, ErrorReturn,
// BindFailure). The generation takes no further message and its context ends at once. Its
// supervisor looks up the policy cell and the strategy, stops what has to stop (newest
// first, each within its StopTimeout), waits out the back-off and starts the next
// generation. Beyond either of its budgets a group stops and fails upward; past the root that
// is an Exit on Done, never a panic. A member of a pool is parked instead, and tried again at
// the cap of its back-off, or once when Pool.Wake says so. Children that are down stay in
// Inspect with cause, time and next try; Watch tells every change of a state. A child that goes
// down for good by its policy is an alarm, and a permanent one that ends by itself is a fault.
//
// A hang cannot be ended from outside in Go: it is detected by the watchdog, its context is
// cancelled, it is given StopTimeout, and then it is abandoned: fenced, forgotten and
// replaced. Its current handler may still return one day; nothing else of it runs. Too many
// of these below a supervisor, or in the whole tree, fail it.
//
// # What may run in parallel
//
// Receive is called by one goroutine at a time for one generation, and two generations of
// one child never overlap unless the older one was abandoned. Jobs run beside Receive.
// Everything on System, Ref, Pool and Group may be called from any goroutine, as may
// Context's Go, Send, After, Ready and Fence from a job.
//
// # Glossary
//
// A child is an actor at a path; a generation is one life of it, named path#generation and
// never named so twice. A fault is a panic, hang, error return or bind failure. A dead
// letter is a message nobody took. An abandoned generation is one that would not stop; while
// it still runs it is a zombie. Parked children used up their budget and are retried at the
// capped back-off.
//
// # Subpackages
//
// core is the pure step from event to actions, and core/play replays what it decides; catalog the closed list of the product's
// children; serve the actor behind every network port; hazards the reasons, as tests, why
// the kernel is our own. test/harness tests actors under it. DESIGN.md has the rejected alternatives.
package supervision
