// Package replicagroup serves ReplicaGroups: a number of like pods of a named size, tended by the strategies kernel.
//
// The kernel (../../strategy) decides; this package is the actor and the kind around it. definitions.yaml is the kind, as the API serves it:
// Define writes it. A pass over a group takes in what the user has changed (fold.go), lets the kernel tick over a world that has only this
// set in it (pass.go), and writes down what people see (status.go, conditions.go). world (api.go) is all that it reads and writes.
//
// # What is what
//
//   - A replica is a Pod that the group controls; its name ends in the replica's, r1, r2 and so on, and is never used for two. It is hydrated
//     when it is Ready. A pod that is on its way out, or has ended, is no replica any more; one that has ended is deleted and replaced.
//   - A shape is a size, a set of zones and a version of the template. Versions are kept as ControllerRevisions while anything refers to
//     them, so that a replica of what is realized can be made when the spec has moved on.
//   - A size is a SizeClass: what the first container requests and is limited to. It cannot be changed, only removed; then what there is
//     stays and nothing new of it is made.
//   - There is something to hydrate when the template has a readiness probe or gate.
//   - There is no room when the namespace's quota refuses a pod, or when a pod finds no node for unplacedGrace.
//   - What is to be refreshed, and when, is in the spec. Up to when it is complete says an annotation of the group, RefreshedPrefix and the
//     object's name, if the spec says that it is reported; otherwise each refresh counts as done at its instant.
//   - The audit are Events of the group. They may be lost when the process is killed between the write and the Event; how a change ended
//     is in the record and in the condition Reconfiguring, which are stored in that one write.
//
// # Only one at a time
//
// A group has one actor, whose writes carry its fence. What is stored is written by compare-and-append on the version of the object that the
// decision was made from, and a decision about a spec that has changed since is rejected, also when nothing stored has changed yet. Before
// pods are made or deleted the API itself is asked whether the group is still what it was.
package replicagroup
