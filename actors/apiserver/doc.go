// Package apiserver serves the Kubernetes API: every stable built-in group, custom resources, discovery and OpenAPI, from upstream's own
// libraries over this project's store.
//
// # The way of a request
//
//	network     Handler: panic guard, request info, deadline, authentication, impersonation, limit in flight, authorization
//	in process  InProcess: panic guard, request info, authorization; who asks is known already
//	both        built-in groups, else custom resources, else 404; admission, validation and storage are the same
//
// # The caller's duties
//
//  1. New over an open store. It starts what admission and authorization look up, and returns before they know everything; a request that
//     needs them waits.
//  2. Bootstrap, until it succeeds. Before that RBAC allows nobody but system:masters, and the namespaces do not exist.
//  3. Serve Handler on a listener of your own, with the configuration of identity.ServerTLS.
//  4. Close, after the listener and before the store. Requests in process fail from then on with a clear error.
//
// New changes two process-wide settings of libraries: panics on their goroutines are reported instead of ending the process, and so are
// fatal log lines.
//
// # What may run in parallel
//
// Every method of Server. Several servers may live in one process, one after the other or at once over different stores.
//
// # Glossary
//
//   - core: the group with the empty name (pods, services, nodes, ...). Assembled here piece by piece, since upstream's assembly opens the
//     engine itself.
//   - allocators: what hands out ClusterIPs and node ports. In memory, seeded from the stored Services.
//   - loopback: the server's own client to itself, in process, as system:apiserver.
//   - late converter: knowledge of the fields of built-in types, built in the background, needed by the first write.
//   - documents: OpenAPI, built when asked for, identified by a hash that is known before.
package apiserver
