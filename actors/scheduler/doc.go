// Package scheduler gives pending pods a node: one supervised actor around the pure decisions of package placement.
//
// # How it works
//
// A feed job lists nodes and pods and follows their changes; it never decides anything. The actor takes what has come in, keeps the
// ledger and the queue, places a batch of pods, books each one as assumed, and hands the bindings to a few jobs that store them in
// parallel. A binding that fails gives its room back and its pod waits a little. A pod that fits nowhere is told so in its PodScheduled
// condition and an Event, both only when the explanation changes, and waits for a change of the cluster that may help.
//
// # Duties of the caller
//
//  1. Deps.Client must not limit its own rate: the scheduler bounds its parallelism itself.
//  2. Deps.NodeReady must be quick and must not block: it is asked for every node.
//
// # What may run in parallel
//
// The actor is alone with ledger and queue. Jobs share only the inbox and the lanes, which have locks of their own.
//
// # At rest
//
// Without pending pods and with all nodes ready no timer runs. Otherwise a tick every reviewEvery looks at readiness in memory. Nothing is
// written unless a pod is bound, an explanation changed, or a node's taints no longer say what its state is.
//
// # Glossary
//
//   - Turn: one pass of the actor: absorb, place, bind.
//   - Lane: a bounded set of jobs that work off one kind of task.
//   - Active, resting, waiting, binding: the states of a pending pod (see queue.go).
package scheduler
