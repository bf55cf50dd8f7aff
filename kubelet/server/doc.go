// Package server is what the kubelet serves on its own port: the pods as they are here, their logs, commands in their
// containers, and connections to their ports.
//
// # The caller's duties
//
//  1. Serve [New]'s handler over TLS and ask for client certificates; who shows none that the cluster's authority signed
//     gets 401.
//  2. End [Deps.Context] when the server stops: streams end with it.
//
// Every refusal carries its reason in the body. What is not served answers 501 and says so.
package server
