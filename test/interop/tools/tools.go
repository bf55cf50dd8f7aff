//go:build tools

// Package tools pins the upstream programs that the node is tried with, at the versions of the libraries that the node is made of.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"

	_ "github.com/nodeactor/nodeactor/store"
)
