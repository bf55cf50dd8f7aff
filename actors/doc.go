// Package actors is the folder of everything that lives in the supervision tree.
//
//   - node builds the tree of one host from the catalog, boots it and stops it.
//   - apiserver assembles the Kubernetes API over the store.
//   - cache gives this process typed objects from the store's index.
//   - operator is the contract of reconcilers: one actor for each manifest.
//   - controllers are the built-in reconcilers, one folder for each.
//   - scheduler binds pending pods to nodes.
//   - health answers /livez, /readyz and /metrics from the tree.
//
// The caller's duty is the tree's order: a part may be started when what stands before it
// in actors/node has acknowledged its start. Everything here may run in parallel unless a
// package says otherwise.
package actors
