package storage

import (
	"errors"
	"fmt"
	"sync"

	"github.com/nodeactor/nodeactor/store/boltfile"
)

// ErrLocked is returned when another process has the file of a store open.
var ErrLocked = boltfile.ErrLocked

// ErrCorrupt is returned when the file of a store is damaged, or is no such file.
var ErrCorrupt = boltfile.ErrCorrupt

// remedy is the way out of a damaged file.
const remedy = "move it away and put back a copy, or start without it and add the manifests again"

// BoltStore is a Store in one file, which one process has open at a time.
type BoltStore struct{ *local }

// OpenBolt opens the store in a file, and makes the file if there is none; its directory has to exist. ErrLocked is returned when another
// process has it open, ErrCorrupt when it is damaged. Whoever was known to hold leases is given lease.TTL to renew its session.
func OpenBolt(path string, opts ...Option) (*BoltStore, error) {
	l, err := openLocal(path, chosen(opts))
	if err != nil {
		return nil, err
	}
	return &BoltStore{l}, nil
}

// openLocal makes a local store of a file.
func openLocal(path string, o options) (*local, error) {
	back, err := openDisk(path)
	if err != nil {
		return nil, err
	}
	at := Revision(0)
	_ = back.view(func(t table) error { at = revisionOf(t); return nil })
	ids, err := holders(back)
	if err != nil {
		_ = back.close()
		return nil, fmt.Errorf("cannot open store %s: %w: %w; %s", path, ErrCorrupt, err, remedy)
	}
	return newLocal(back, o, at, ids, newCommitter), nil
}

// disk is a backend in a file.
type disk struct {
	file *boltfile.File
	once sync.Once
}

func openDisk(path string) (*disk, error) {
	file, err := boltfile.Open(path, objects, leases, history, meta)
	if errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("cannot open store %s: %w; %s", path, err, remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open store %s: %w", path, err)
	}
	return &disk{file: file}, nil
}

func (d *disk) view(f func(table) error) error {
	return closedFile(d.file.View(func(tx boltfile.Tx) error { return f(diskTable{tx}) }))
}

func (d *disk) update(f func(table) error) error {
	return closedFile(d.file.Update(func(tx boltfile.Tx) error { return f(diskTable{tx}) }))
}

func (d *disk) close() (err error) {
	d.once.Do(func() { err = d.file.Close() })
	return err
}

func closedFile(err error) error {
	if errors.Is(err, boltfile.ErrClosed) {
		return ErrClosed
	}
	return err
}

// diskTable is a transaction of a disk.
type diskTable struct{ tx boltfile.Tx }

func (d diskTable) get(bucket, key string) []byte { return d.tx.Get(bucket, key) }

func (d diskTable) put(bucket, key string, value []byte) error { return d.tx.Put(bucket, key, value) }

func (d diskTable) remove(bucket, key string) error { return d.tx.Remove(bucket, key) }

func (d diskTable) each(bucket, prefix, after string, visit func(string, []byte) bool) error {
	d.tx.Each(bucket, prefix, after, visit)
	return nil
}
