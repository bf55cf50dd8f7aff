// Package network connects the pods of one node: a bridge, one veth pair and one address per pod, and masquerading for
// what pods send out of the node. All of it is netlink; no program is started.
//
// # What it is for
//
// The kubelet calls Setup once, Attach for the network namespace of each new sandbox, and Detach when the pod is gone.
// Pods on the host's network need none of it.
//
// # The caller's duties
//
//  1. Call Open in the network namespace the node lives in: the root namespace or any other. The Network remembers it,
//     and from then on every method may be called from any thread.
//  2. Give two nodes on one machine different names (Names) and, in one namespace, different pod ranges (ChooseCIDR).
//     Setup refuses a range that something else routes already.
//  3. Call Sweep after a start, with the pods that still exist, before the first Attach of a new pod.
//  4. Give every call a context that ends. The kernel answers in milliseconds; a call that outlives its context stops
//     after the step it is in, and every call may be repeated.
//
// # Record before act
//
// An address is in the ledger before the first link is made for it, and leaves it after the last is gone. After a kill
// at any point, Attach completes and Detach or Sweep removes what was begun.
//
// # What may run in parallel
//
// All methods; changes wait for each other.
//
// # Glossary
//
//   - node namespace: the network namespace Open was called in; it holds the bridge.
//   - host end, pod end: the two interfaces of a veth pair, a port of the bridge and eth0 of the pod.
//   - gateway: the first address of the pod range; the bridge has it, and it is the pods' default route.
package network
