// Package cluster holds what makes several hosts one cluster: the keys by which they prove who they are, and gossip about who is there.
//
// # What is where
//
//   - identity: certificate authorities, certificates, the key of ServiceAccount tokens, the administrator's kubeconfig.
//   - gossip: membership by SWIM, and the redialling that heals partitions. A single host does not run it.
//   - lease: which node tends which manifest, decided without I/O: sessions, leases with fencing epochs, takeover, balance.
//
// # The caller's duties
//
// The packages below say their own. This one has no code: it is the floor above the store and below the kubelet, and nothing in it may import
// anything higher.
//
// # What may run in parallel
//
// Everything that the packages below do not exclude.
//
// # Glossary
//
//   - node: one host with one data directory.
//   - authority: who signs the certificates of the cluster; every node trusts it and nobody else.
package cluster
