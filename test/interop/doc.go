// Package interop tries a real node with programs of others: etcd's own tools, and a kube-apiserver as it is published.
//
// The programs are built from the module in tools on first use, into the user's cache directory. The test command runs the
// tests with etcdctl and etcdutl; `make interop` adds the kube-apiserver, which keeps running for INTEROP_MINUTES.
package interop
