package engine

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// errBehind is returned when the log ends before what is known to have been in it.
var errBehind = errors.New("its end is missing")

const (
	// firstRevision is that of a database without a key.
	firstRevision = 1
	// revisionBytes is the length of a revision in the keys of a database.
	revisionBytes = 8
)

// storedRevision is the revision of a database: that of its last key, or the one to which it was compacted when all later keys are gone.
func storedRevision(tx *bbolt.Tx) int64 {
	revision := int64(firstRevision)
	if b := tx.Bucket(schema.Key.Name()); b != nil {
		if k, _ := b.Cursor().Last(); len(k) >= revisionBytes {
			revision = max(revision, int64(binary.BigEndian.Uint64(k)))
		}
	}
	b := tx.Bucket(schema.Meta.Name())
	for _, name := range [][]byte{schema.FinishedCompactKeyName, schema.ScheduledCompactKeyName} {
		if b == nil {
			break
		}
		if v := b.Get(name); len(v) >= revisionBytes {
			revision = max(revision, int64(binary.BigEndian.Uint64(v)))
		}
	}
	return revision
}

// appliedIndex is the last log entry that the database has taken in, 0 for an empty one.
func appliedIndex(tx *bbolt.Tx) uint64 {
	b := tx.Bucket(schema.Meta.Name())
	if b == nil {
		return 0
	}
	if v := b.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
