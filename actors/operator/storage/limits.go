package storage

import "time"

const (
	// MaxValue is how many bytes the value of an object may have.
	MaxValue = 1 << 20
	// historyKept is of how many of the last changes a watch may begin.
	historyKept = 1 << 16
	// togetherMost is how many writes share a transaction.
	togetherMost = 512
	// stalled is by how much time a store has to come late for its next appointment to know that its process had been stopped.
	stalled = 2 * time.Second
)
