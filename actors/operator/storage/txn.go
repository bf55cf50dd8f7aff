package storage

import (
	"encoding/binary"
	"fmt"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

// txn is one transaction that writes: it checks and then writes, so that each of its writes is done or leaves no trace.
type txn struct {
	table
	revision Revision
	// changed are the keys that were written, in order, each behind its bucket's mark.
	changed []string
}

// The marks tell in history and in feeds of which bucket a key is.
const (
	objectMark = "o"
	leaseMark  = "l"
)

// revisionOf reads the last revision of a store.
func revisionOf(t table) Revision {
	b := t.get(meta, metaRevision)
	if len(b) != revisionSize {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// run does writes in one transaction, and returns which keys they changed and the revision they led to.
func run(b backend, writes []func(*txn) error) (changed []string, at Revision, err error) {
	err = b.update(func(t table) error {
		tx := &txn{table: t, revision: revisionOf(t)}
		before := tx.revision
		for _, write := range writes {
			if err := write(tx); err != nil {
				return err
			}
		}
		changed, at = tx.changed, tx.revision
		if tx.revision == before {
			return nil
		}
		return t.put(meta, metaRevision, []byte(revisionKey(tx.revision)))
	})
	return changed, at, err
}

// next begins a write of a key: it has the revision that is returned.
func (t *txn) next(mark, key string) (Revision, error) {
	t.revision++
	t.changed = append(t.changed, mark+key)
	if t.revision > historyKept {
		if err := t.remove(history, revisionKey(t.revision-historyKept)); err != nil {
			return 0, err
		}
	}
	return t.revision, t.put(history, revisionKey(t.revision), []byte(mark+key))
}

// readLease reads a record. Where there is none it is the floor, which is zero until records have been folded.
func readLease(t table, manifest string) (lease.Stored, error) {
	b := t.get(leases, manifest)
	if b == nil {
		b = t.get(meta, metaFloor)
	}
	s, err := decodeLease(b)
	if err != nil {
		return s, fmt.Errorf("cannot read the lease of %s: %w", manifest, err)
	}
	return s, nil
}

// append does one write of a lease. The second error is that of the store, after which nothing of the transaction is done.
func (t *txn) append(w lease.Write) (Appended, error) {
	old, err := readLease(t, w.Manifest)
	if err != nil {
		return Appended{}, err
	}
	if old.Revision != w.Expected {
		return Appended{Err: fmt.Errorf("cannot write the lease of %s at revision %d, it is at %d: %w", w.Manifest, w.Expected, old.Revision, ErrConflict)}, nil
	}
	if err := lease.CheckNext(old.Record, w.Record); err != nil {
		return Appended{Err: fmt.Errorf("cannot write the lease of %s: %w", w.Manifest, err)}, nil
	}
	revision, err := t.next(leaseMark, w.Manifest)
	if err != nil {
		return Appended{}, err
	}
	done := lease.Stored{Record: w.Record, Revision: lease.Revision(revision)}
	return Appended{Revision: done.Revision}, t.put(leases, w.Manifest, encodeLease(done))
}

// written is what became of one write of an object.
type written struct {
	revision Revision
	err      error
}

// write does one write of an object; its errors are as those of append.
func (t *txn) write(w Write) (written, error) {
	if refused, err := t.refusal(w); refused != nil || err != nil {
		return written{err: refused}, err
	}
	key := w.ID.Key()
	revision, err := t.next(objectMark, key)
	if err != nil {
		return written{}, err
	}
	if w.Delete {
		if err := t.remove(objects, key); err != nil {
			return written{}, err
		}
		return written{revision: revision}, t.orphaned(key)
	}
	if w.Expected == 0 {
		if err := t.adopted(key); err != nil {
			return written{}, err
		}
	}
	return written{revision: revision}, t.put(objects, key, encodeObject(revision, w.Value))
}

// refusal is why a write must not be done.
func (t *txn) refusal(w Write) (refused, err error) {
	if w.Fence != nil {
		now, err := readLease(t, w.Fence.Manifest)
		if err != nil {
			return nil, err
		}
		if refused := w.Fence.Check(now.Record); refused != nil {
			return refused, nil
		}
	}
	at, _ := decodeObject(t.get(objects, w.ID.Key()))
	if at != w.Expected || w.Delete && at == 0 {
		return fmt.Errorf("cannot write %s at revision %d, it is at %d: %w", w.ID.Key(), w.Expected, at, ErrConflict), nil
	}
	return nil, nil
}
