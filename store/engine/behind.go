package engine

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// errBehind is returned when the log ends before what is known to have been in it.
var errBehind = errors.New("its end is missing")

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
