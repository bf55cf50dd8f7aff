// Package nodelifecycle judges nodes by their heartbeats, taints them by their conditions, and evicts what does not tolerate that.
//
// decide.go is the judgement of one node from what is observed: which conditions to write, which taints, which pods to mark as not
// ready, which to evict and when to look again. orphans.go removes pods whose node no longer exists.
//
// A heartbeat is the newest of: what this process heard itself, the stored lease, the heartbeat time of the node's conditions, and
// the time this controller began to listen. So a restart of the control plane never makes a living node unknown.
package nodelifecycle
