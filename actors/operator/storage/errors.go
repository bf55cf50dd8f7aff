package storage

import (
	"errors"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

var (
	// ErrConflict is returned when an object or lease is not at the revision that was expected. Nothing was written.
	ErrConflict = lease.ErrConflict
	// ErrFenced is returned when the fence of a write is not that of the lease's present holder. Nothing was written.
	ErrFenced = lease.ErrFenced
	// ErrCompacted is returned when a watch is to begin so far back that the changes since are not known any more: read all and watch
	// from there.
	ErrCompacted = errors.New("the changes since that revision are not kept any more")
	// ErrName is returned when a kind, namespace or name cannot be part of a key.
	ErrName = errors.New("a name must not be empty and must not contain a slash or a control character")
	// ErrClosed is returned when the store has been closed.
	ErrClosed = errors.New("the store is closed")
	// ErrAway is returned when the process that had a shared store open has gone while a write was under way: whether it was done is
	// open. Another process opens the store within moments.
	ErrAway = errors.New("the process that has the store open has gone, the outcome is not known")
	// ErrVersion is returned when processes of different versions of a shared store meet.
	ErrVersion = errors.New("the process that has the store open is of another version: stop one of them")
	// ErrTooLarge is returned when a value is larger than MaxValue.
	ErrTooLarge = errors.New("the value is too large")
)
