package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/nodeactor/nodeactor/store/boltcheck"
)

// What etcd's database looks like inside, as far as its revision goes: the buckets, keys and forms of go.etcd.io/etcd/server/v3/storage/schema.
const (
	keyBucket        = "key" // by revision: 8 bytes of it, '_', 8 bytes of its part
	metaBucket       = "meta"
	finishedCompact  = "finishedCompactRev"
	scheduledCompact = "scheduledCompactRev"
	revisionBytes    = 8
)

// openTimeout bounds waiting for a lock on a database that somebody writes to.
const openTimeout = time.Second

// Verify reads the whole file at path and tells what it holds: the checksum has to be that of its bytes, every page of the database has to be
// there and in order. The error names the file and is ErrDamaged when that is so.
func Verify(ctx context.Context, path string) (Info, error) {
	info, err := verify(ctx, path)
	if err != nil {
		return Info{}, fmt.Errorf("cannot use snapshot %s: %w", path, err)
	}
	return info, nil
}

func verify(ctx context.Context, path string) (Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return Info{}, cause(err)
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return Info{}, cause(err)
	}
	if err := checkSum(ctx, f, stat); err != nil {
		return Info{}, err
	}
	found, err := checkDatabase(path)
	if err != nil {
		return Info{}, err
	}
	info, named := parseName(filepath.Base(path))
	if !named {
		info.Time = stat.ModTime().UTC().Truncate(time.Second)
	}
	info.Path, info.Size, info.Revision = path, stat.Size(), found.newest
	return info, nil
}

// checkSum compares the end of a file with the sum of what is before it.
func checkSum(ctx context.Context, f *os.File, stat os.FileInfo) error {
	switch {
	case !stat.Mode().IsRegular():
		return fmt.Errorf("it is %w: it is not a file", ErrDamaged)
	case stat.Size() <= sumSize || stat.Size()%sectorSize != sumSize:
		return fmt.Errorf("it is %w: its %d bytes do not end in a checksum; it was cut off, or is no snapshot", ErrDamaged, stat.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(writer{ctx, sum}, f, stat.Size()-sumSize); err != nil {
		return err
	}
	want := make([]byte, sumSize)
	if _, err := io.ReadFull(f, want); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return fmt.Errorf("it is %w: its checksum is not that of its content", ErrDamaged)
	}
	return nil
}

// writer ends a long copy with its context.
type writer struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// revisions are the last ones of a database.
type revisions struct {
	newest int64 // of the store
	stored int64 // of what is still kept; less when compaction has removed the last change, 0 when nothing is left
}

// checkDatabase walks the pages of the database at path, whatever is behind them, and returns its last revisions.
func checkDatabase(path string) (revisions, error) {
	if err := boltcheck.File(path); errors.Is(err, boltcheck.ErrCorrupt) {
		return revisions{}, fmt.Errorf("it is %w: %w", ErrDamaged, err)
	} else if err != nil {
		return revisions{}, err
	}
	return lastRevisions(path)
}

// lastRevisions reads the database at path, whose pages are in order. It does not wait for one that is being written to.
func lastRevisions(path string) (found revisions, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is %w: it cannot be read: %v", ErrDamaged, r)
		}
	}()
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return found, fmt.Errorf("cannot open its database: %w", err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		found, err = readRevisions(tx)
		return err
	})
	return found, err
}

// firstRevision is that of a store that was never written to.
const firstRevision = 1

func readRevisions(tx *bbolt.Tx) (found revisions, err error) {
	keys := tx.Bucket([]byte(keyBucket))
	if keys == nil {
		return found, fmt.Errorf("it is %w: its database is not that of a store", ErrDamaged)
	}
	if last, _ := keys.Cursor().Last(); len(last) >= revisionBytes {
		found.stored = int64(binary.BigEndian.Uint64(last))
	}
	found.newest = max(found.stored, firstRevision)
	if meta := tx.Bucket([]byte(metaBucket)); meta != nil {
		for _, name := range []string{finishedCompact, scheduledCompact} {
			if v := meta.Get([]byte(name)); len(v) >= revisionBytes {
				found.newest = max(found.newest, int64(binary.BigEndian.Uint64(v)))
			}
		}
	}
	return found, nil
}

// cause strips the path from an error of a file: our own message names it already.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
