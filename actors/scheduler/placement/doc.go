// Package placement decides on which node a pod may run; it is pure, so it has no clock, no goroutine and no I/O.
//
// A Cluster is the ledger: the nodes, and what every pod placed on them takes. Its owner feeds it what it observes (SetNode, DeleteNode,
// Observe, DeletePod) in any order, asks Place for a decision, and books the decision with Assume before it asks for the next one.
//
// Duties of the caller:
//
//  1. One goroutine at a time: a Cluster has no lock.
//  2. Objects handed in are kept and must not be changed afterwards.
//  3. Every Assume ends in one of: Observe of the bound pod, Forget, or DeletePod.
//
// Filters run in this order, and a node is counted under the first that refuses it: readiness, cordon, node name, node selector and
// required node affinity, taints, host ports, resources, topology spread, pod affinity. Nodes that pass are scored; the highest score wins
// and equal scores are told apart by a hash of pod and node, so that the same input always gives the same answer.
//
// Glossary: a demand is a pod compiled for placing; an occupant is a pod that takes room on a node; an assumed occupant is one whose
// binding has been asked for but not been observed yet.
package placement
