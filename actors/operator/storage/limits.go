package storage

import "time"

const (
	// MaxValue is how many bytes the value of an object may have.
	MaxValue = 1 << 20
	// historyKept is of how many of the last changes a watch may begin.
	historyKept = 1 << 16
	// requestsMost is how many requests of one process a host works on at a time; further ones wait.
	requestsMost = 256
	// retryLeast and retrySpread are how soon a process looks again for who has a shared store; retryFault is how soon after a failure.
	retryLeast  = 3 * time.Millisecond
	retrySpread = 10 * time.Millisecond
	retryFault  = time.Second
	// wireVersion is what both sides of a connection have to speak.
	wireVersion = 1
	// togetherMost is how many writes share a transaction.
	togetherMost = 512
	// orphansMost is how many records of leases whose manifests are gone are kept; then they are folded into one.
	orphansMost = 20_000
	// stalled is by how much time a store has to come late for its next appointment to know that its process had been stopped.
	stalled = 2 * time.Second
)
