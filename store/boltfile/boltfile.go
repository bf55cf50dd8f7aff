// Package boltfile opens a bbolt file with care, and lets packages that are not the store's keep values in one.
//
// A file that bbolt could not walk is refused before bbolt maps it, and a file that another process has open is not waited for.
package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/boltcheck"
)

const (
	// lockWait bounds how long Open waits for another process to let go of the file.
	lockWait = 50 * time.Millisecond
	// fileMode keeps a file to its owner.
	fileMode = 0o600
)

var (
	// ErrLocked is returned when another process has the file open.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt is returned when the file is no bbolt file, or is damaged.
	ErrCorrupt = boltcheck.ErrCorrupt
	// ErrClosed is returned when the file has been closed.
	ErrClosed = errors.New("the file is closed")
)

// OpenDB opens or makes the file at path, whose directory has to exist. The caller names the file in what it says of an error.
func OpenDB(path string) (*bbolt.DB, error) {
	if err := boltcheck.File(path); err != nil {
		if held(path) { // by a process that writes, so that what was read need not fit together
			return nil, ErrLocked
		}
		return nil, err
	}
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return db, err
}

// held tells whether another process has the file locked, as bbolt does while it is open.
func held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// File is an open file of named buckets. Its methods are safe for concurrent use; transactions that write come one after the other.
type File struct{ db *bbolt.DB }

// Open opens or makes the file at path and the buckets. ErrLocked is returned when another process has it, ErrCorrupt when it is no such
// file or is damaged.
func Open(path string, buckets ...string) (*File, error) {
	db, err := OpenDB(path)
	if err != nil {
		return nil, err
	}
	f := &File{db}
	if err := f.prepare(buckets); err != nil {
		_ = db.Close()
		return nil, err
	}
	return f, nil
}

// prepare makes the buckets that are missing; it writes nothing if none is.
func (f *File) prepare(buckets []string) error {
	missing := false
	err := f.db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			missing = missing || tx.Bucket([]byte(name)) == nil
		}
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Tx is a transaction. What it gives is valid until it ends, and is not to be changed.
type Tx struct{ tx *bbolt.Tx }

// View runs a transaction that reads. It sees one moment of the file.
func (f *File) View(do func(Tx) error) error {
	return closed(f.db.View(func(tx *bbolt.Tx) error { return do(Tx{tx}) }))
}

// Update runs a transaction that writes; when it returns nil, what was written is on disk. After an error of do nothing is written.
func (f *File) Update(do func(Tx) error) error {
	return closed(f.db.Update(func(tx *bbolt.Tx) error { return do(Tx{tx}) }))
}

// Close waits for the transactions under way and lets go of the file.
func (f *File) Close() error { return f.db.Close() }

func closed(err error) error {
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// Get gives the value of a key, nil when there is none.
func (t Tx) Get(bucket, key string) []byte { return t.tx.Bucket([]byte(bucket)).Get([]byte(key)) }

// Put stores a value, which must not be changed before the transaction has ended.
func (t Tx) Put(bucket, key string, value []byte) error {
	return t.tx.Bucket([]byte(bucket)).Put([]byte(key), value)
}

// Remove removes a key; one that is not there is fine.
func (t Tx) Remove(bucket, key string) error { return t.tx.Bucket([]byte(bucket)).Delete([]byte(key)) }

// Each visits the keys above after that begin with prefix, in order, until visit returns false.
func (t Tx) Each(bucket, prefix, after string, visit func(key string, value []byte) bool) {
	c := t.tx.Bucket([]byte(bucket)).Cursor()
	k, v := c.Seek([]byte(max(prefix, after)))
	if k != nil && after != "" && string(k) == after {
		k, v = c.Next()
	}
	for ; k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
		if !visit(string(k), v) {
			return
		}
	}
}
