// Package e2e drives the real binary with the real kubectl and real containers.
//
// The tests need root and the programs that `make binaries` builds; NODEACTOR_BIN names
// their folder (bin/ at the repository's root by default). Each node under test has its
// own data directory, ports, cgroup root and pod network, and is removed with
// `nodeactor reset` whatever the outcome.
package e2e
