// Package test is the folder of what is tested across packages.
//
//   - rules reads the sources: imports, clocks, goroutines, comments.
//   - harness tests actors: seeded scheduler, bubbles, injected faults; it is for others, too.
//   - standin fills the product's tree with actors whose effects are fakes.
//   - faultmatrix brings every fault about in every child, and compares with the catalog.
//   - sim storms that tree under the seeded scheduler.
//   - registry serves images on loopback and builds small ones.
//   - isolate runs a test binary again in a mount namespace of its own.
//   - netspace puts tests into network namespaces of their own; it needs root.
//   - verdict lets a test see how a test fails.
//   - hostimage compares the host before and after.
//   - e2e drives the real binary with the real kubectl and real containers; it needs root.
//   - interop tries a node with programs of others: etcdctl, etcdutl, a kube-apiserver; it needs root.
//   - linear judges what clients of three members of a store were told, under crashes, pauses and partitions.
//   - features says which test proves which feature, and holds every claim to it.
//   - wire is a loopback network whose lines can be cut.
//   - vm runs test programs in a virtual machine with pure cgroup v2.
//   - bench measures the product beside the upstream control plane.
//
// Tests that make something on the host name it with a prefix of their own and remove what
// an earlier run that was killed has left.
package test
