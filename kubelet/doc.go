// Package kubelet runs the pods of one node: it watches which pods are assigned to it, keeps one actor for each, and
// tells the API how they and the node are.
//
// # What it is for
//
// [Spec] gives the supervision subtree of one node's kubelet. Its children: network sets up what pods share; images
// pulls; relist asks the runtime what truly runs and feeds the node's health; pods is the pool of pod actors (package
// pod); sync follows the API and assigns pods to actors; node-status and node-lease speak for the node; listener serves
// logs, exec, attach and port-forward.
//
// # The caller's duties
//
//  1. Open runtime, images, network and ledger first; the kubelet closes none of them.
//  2. One kubelet per data directory.
//  3. Start the subtree whether or not the API answers: assigned pods come back from the ledger, and the rest follows
//     when the API does.
//  4. Stopping the subtree leaves all containers running, on purpose. They are adopted at the next start.
//
// # Glossary
//
//   - bound pod: a pod whose spec.nodeName is this node.
//   - relist: one complete look at what the runtime has; the truth, where exit events are hints.
//   - adoption: taking over sandboxes and containers that an earlier process left running.
//   - heartbeat: a renewal of the node's Lease that is kept in memory only.
package kubelet
