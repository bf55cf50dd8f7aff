// Package supervisionrest serves the supervision tree as Kubernetes objects: actors and faultpolicies, read-only. Nothing is stored or kept:
// each answer is made from the tree as it is at that moment.
//
// The caller's duties: give Group a Tree, install the group with a serializer that writes text (Group says so itself), refuse writes with
// Refuse, and destroy the storages when the server ends.
package supervisionrest
