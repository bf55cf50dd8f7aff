// Package deployment rolls ReplicaSets so that a Deployment's pods move from one template to the next within its limits.
//
// decide makes a plan from what is observed; it is pure and is tested against random clusters. executor.go carries a plan out.
//
// # How a plan is made
//
// The plan works on copies of the sets, changes them as far as the limits allow in one go, and ends with the status those
// changes call for. Which steps it takes is chosen in plan.go, one file per idea:
//
//   - revision.go: which set has the wanted template, and the numbering of revisions
//   - rolling.go: maxSurge and maxUnavailable
//   - recreate.go: all old pods first
//   - scale.go: proportional scaling while a rollout is under way
//   - history.go: how many old sets are kept
//   - status.go, progress.go: counts and conditions
//
// Availability is read from the status of the sets, which may lag behind their size. Of a set that was just scaled down no more
// pods are counted available than it still asks for, so that a stale status never takes away more than maxUnavailable.
package deployment
