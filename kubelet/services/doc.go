// Package services routes what is sent to Services: cluster addresses and ports of the node, to the endpoints behind them,
// by one nftables table.
//
// # What it is for
//
// [Planner] is pure: given a Service and its EndpointSlices it works out, as a [Delta], what changes in the table.
// [Table] writes a Delta in one batch, and by Resync makes the table right whatever it finds. Headless Services, those of
// type ExternalName and those that ask for another proxy are not routed.
//
// # The caller's duties
//
//  1. Let one actor own a Planner and its Table; neither may be used in parallel.
//  2. Call Open in the network namespace the node lives in. From then on every method may be called from any thread.
//  3. At the start, let the Planner Adopt the Table's Slots, plan all Services that exist and call Resync once with
//     Desired; Delta by Delta from then on. Resync before the Services are known would take all of them away.
//  4. After an error of Apply nothing was changed in the kernel but the Planner has moved on: call Resync.
//  5. Call Resync now and then, since others can change the table.
//  6. Call ForgetFlows with the Flows of a Delta after it was applied, and with all Routes after a Resync.
//  7. Give two nodes in one namespace different names of the table.
//  8. Give the node a route to the range of cluster addresses, such as a default route: without one its own programs are
//     refused before any rule is asked.
//  9. Call Remove when the node is taken away, not when the program stops: connections and Services live on meanwhile.
//
// # Glossary
//
//   - front: what a client dials: a cluster address, or any address of the node, with protocol and port.
//   - backend: the address and port of an endpoint that a front's packets may go to.
//   - slot: the number of a backend within its front, which a random number picks.
//   - pick: a chain that picks a slot; all fronts of the same kind with as many backends share it.
//   - sticky: with session affinity; a client's packets go to the same backend.
//   - hairpin: a pod that reaches itself through its own Service.
package services
