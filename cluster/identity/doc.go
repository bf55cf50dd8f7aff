// Package identity owns the keys of a cluster: its certificate authorities, the certificates its servers and clients show each other, and the
// key that signs ServiceAccount tokens.
//
// # What is where
//
// Everything lives in one directory, mode 0700, in files of mode 0600 that are replaced atomically:
//
//	ca.pem                  the cluster's certificate authority, certificate and key
//	ca.crt                  its certificate alone, for handing out
//	front-proxy-ca.pem      the authority for identities asserted by a front proxy
//	apiserver.pem           what the API server shows its clients
//	apiserver-kubelet.pem   what the API server shows to kubelets
//	front-proxy.pem         what the API server shows to aggregated API servers
//	admin.pem               the administrator, of the group system:masters
//	kubelet.pem             what this node's kubelet shows its clients
//	node.pem                what this node's kubelet shows to the API server
//	sa.pem                  the key that signs ServiceAccount tokens
//
// A pair is one file, certificate first: two files cannot be replaced in one step, and a crash between the two would leave a pair that
// does not fit.
//
// # The caller's duties
//
//  1. Call Load once per process and directory; the directory belongs to the process that holds the data directory's lock.
//  2. Pass every address under which clients will reach a server in Hosts. A certificate that lacks one of them is issued anew.
//  3. Use the returned tls.Config as it is: renewal happens inside its callbacks, at two thirds of a certificate's life, and needs no restart.
//
// # What may run in parallel
//
// Every method of Identity. Renewal of one certificate is serialised.
//
// # Glossary
//
//   - authority: a certificate that signs others, valid for authorityLife.
//   - leaf: a certificate for one server or client, valid for leafLife, renewed in process.
package identity
