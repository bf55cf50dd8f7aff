package identity

import (
	"os"
	"time"
)

const (
	// authorityLife is how long a certificate authority is valid. It cannot be renewed without handing the new one to every client.
	authorityLife = 10 * 365 * 24 * time.Hour
	// leafLife is how long a leaf is valid when it is issued.
	leafLife = 365 * 24 * time.Hour
	// backdate is how far before its issue a certificate is already valid, for clients whose clock is behind.
	backdate = 5 * time.Minute
	// renewAtNumerator and renewAtDenominator say at which part of its life a leaf is renewed.
	renewAtNumerator, renewAtDenominator = 2, 3

	// dirMode lets only the owner look into the directory.
	dirMode os.FileMode = 0o700
	// fileMode lets only the owner read a key.
	fileMode os.FileMode = 0o600
	// maxFileBytes bounds what is read of one file; the largest real one has under 4 KiB.
	maxFileBytes = 1 << 20
	// damagedSuffix marks a file that was put aside.
	damagedSuffix = ".damaged"
)

// Names of the files below the directory.
const (
	authorityFile           = "ca.pem"
	authorityCertFile       = "ca.crt"
	frontProxyAuthorityFile = "front-proxy-ca.pem"
	apiServerFile           = "apiserver.pem"
	apiServerKubeletFile    = "apiserver-kubelet.pem"
	frontProxyFile          = "front-proxy.pem"
	adminFile               = "admin.pem"
	kubeletFile             = "kubelet.pem"
	nodeFile                = "node.pem"
	serviceAccountFile      = "sa.pem"
)

// Names and groups that the certificates carry.
const (
	// AdminUser is the user of the administrator's certificate.
	AdminUser = "kubernetes-admin"
	// MastersGroup is the group that passes every authorization check.
	MastersGroup = "system:masters"
	// EtcdReadersGroup is the group that may read the whole store through the etcd API.
	EtcdReadersGroup = "nodeactor:etcd-readers"
	// EtcdReaderPrefix precedes the name in the user name of such a reader.
	EtcdReaderPrefix = "nodeactor:etcd-reader:"
	// KubeletClientUser is whom the API server is to kubelets.
	KubeletClientUser = "kube-apiserver-kubelet-client"
	// FrontProxyUser is whom the API server is to aggregated API servers, and the only name the front-proxy check accepts.
	FrontProxyUser = "front-proxy-client"
	// NodesGroup is the group of every kubelet.
	NodesGroup = "system:nodes"
	// NodeUserPrefix precedes the node's name in the user name of its kubelet.
	NodeUserPrefix = "system:node:"
)
