package storage

import (
	"encoding/binary"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// The record of a lease outlives its manifest, so that its epochs go on. So that names which are made up anew for ever do not fill the store, many
// records of manifests that are gone are folded into one, the floor: free, and at the highest epoch of them all. It answers for every manifest without
// a record of its own. Its revision is above all of theirs, so that who remembers one of them learns of it.

// Keys in meta.
const (
	metaFloor   = "floor"
	metaOrphans = "orphans"
)

// orphaned notes that the manifest of a record is gone, if there is a record.
func (t *txn) orphaned(key string) error {
	if t.get(leases, key) == nil {
		return nil
	}
	n := t.orphans() + 1
	if n >= orphansMost {
		return t.fold()
	}
	return t.setOrphans(n)
}

// adopted notes that there is a manifest again, or for the first time.
func (t *txn) adopted(key string) error {
	if n := t.orphans(); n > 0 && t.get(leases, key) != nil {
		return t.setOrphans(n - 1)
	}
	return nil
}

func (t *txn) orphans() uint64 {
	b := t.get(meta, metaOrphans)
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (t *txn) setOrphans(n uint64) error {
	return t.put(meta, metaOrphans, binary.BigEndian.AppendUint64(nil, n))
}

// fold folds the free records without manifest. Those that are still held stay, until they are free and the next fold comes.
func (t *txn) fold() error {
	floor, err := decodeLease(t.get(meta, metaFloor))
	if err != nil {
		return err
	}
	keys, held, err := t.foldable(&floor)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := t.remove(leases, key); err != nil {
			return err
		}
	}
	floor.Revision = lease.Revision(t.revision)
	if err := t.put(meta, metaFloor, encodeLease(floor)); err != nil {
		return err
	}
	// What is held may be folded later, but not at once again.
	return t.setOrphans(min(held, orphansMost/2))
}

// foldable are the records to fold; the floor rises to their epochs. held counts the others without manifest.
func (t *txn) foldable(floor *lease.Stored) (keys []string, held uint64, err error) {
	var failed error
	err = t.each(leases, "", "", func(key string, value []byte) bool {
		var s lease.Stored
		if s, failed = decodeLease(value); failed != nil {
			return false
		}
		switch {
		case t.get(objects, key) != nil:
		case s.Free():
			keys = append(keys, key)
			floor.Epoch = max(floor.Epoch, s.Epoch)
		default:
			held++
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return keys, held, err
}
