// Package ledger is the node-local record on disk: small JSON values in named buckets, durable before Put returns.
//
// It holds what a node must know without any server: its identity, its known peers, and the kubelet's record of every sandbox,
// mount and address written before the thing itself is made. One process owns a ledger at a time.
package ledger
