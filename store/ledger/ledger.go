package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/nodeactor/nodeactor/store/boltfile"
)

const (
	// dirMode is the mode of the directory made for the ledger: it may name secrets' mounts and join keys.
	dirMode = 0o700
	// remedy is the way out of a damaged ledger.
	remedy = "move it away and start again: it holds what this host knows about its own pods, which are then started anew"
)

var (
	// ErrLocked is returned when another process has the ledger open.
	ErrLocked = boltfile.ErrLocked
	// ErrCorrupt is returned when the file is not a ledger, or is damaged.
	ErrCorrupt = boltfile.ErrCorrupt
	// ErrName is returned when a bucket or key is empty.
	ErrName = errors.New("bucket and key must not be empty")
)

// Ledger is an open node-local record. All methods are safe for concurrent use; writers are serialised.
type Ledger struct {
	path string
	db   *bbolt.DB
}

// Open opens the ledger at path, making it and its directory when absent. The caller closes it.
// It fails with ErrLocked when another process holds it and with ErrCorrupt when the file cannot be a ledger.
func Open(path string) (*Ledger, error) {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, fmt.Errorf("cannot open ledger %s: %w", path, err)
	}
	db, err := boltfile.OpenDB(path)
	if errors.Is(err, ErrCorrupt) {
		return nil, fmt.Errorf("cannot open ledger %s: %w; %s", path, err, remedy)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open ledger %s: %w", path, err)
	}
	return &Ledger{path: path, db: db}, nil
}

// Path is the file the ledger lives in.
func (l *Ledger) Path() string { return l.path }

// Close releases the file. Calls after it fail.
func (l *Ledger) Close() error { return l.db.Close() }

// Put stores v as JSON under key and returns once it is on disk. Nothing is kept of v.
// Concurrent callers are committed one after the other, each with its own sync.
func (l *Ledger) Put(bucket, key string, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = l.update(bucket, key, func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), raw)
		})
	}
	if err != nil {
		return fmt.Errorf("cannot record %s/%s: %w", bucket, key, err)
	}
	return nil
}

// Delete removes key and returns once that is on disk. Removing what is absent succeeds and writes nothing.
func (l *Ledger) Delete(bucket, key string) error {
	if ok, err := l.Get(bucket, key, nil); err == nil && !ok {
		return nil
	}
	err := l.update(bucket, key, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		return b.Delete([]byte(key))
	})
	if err != nil {
		return fmt.Errorf("cannot forget %s/%s: %w", bucket, key, err)
	}
	return nil
}

func (l *Ledger) update(bucket, key string, f func(*bbolt.Tx) error) error {
	if bucket == "" || key == "" {
		return ErrName
	}
	return l.db.Update(f)
}

// Get decodes the value of key into v and reports whether there is one. A nil v only asks.
func (l *Ledger) Get(bucket, key string, v any) (bool, error) {
	found := false
	err := l.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		raw := b.Get([]byte(key))
		found = raw != nil
		if !found || v == nil {
			return nil
		}
		return json.Unmarshal(raw, v)
	})
	if err != nil {
		return found, fmt.Errorf("cannot read %s/%s: %w", bucket, key, err)
	}
	return found, nil
}

// Each calls f for every key of the bucket in byte order, and stops at its first error, which it returns.
// raw is a copy that f may keep; f may call Put and Delete, whose effects this walk does not see.
func (l *Ledger) Each(bucket string, f func(key string, raw []byte) error) error {
	type entry struct {
		key string
		raw []byte
	}
	var entries []entry
	err := l.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			entries = append(entries, entry{string(k), append([]byte(nil), v...)})
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("cannot read bucket %s: %w", bucket, err)
	}
	for _, e := range entries {
		if err := f(e.key, e.raw); err != nil {
			return err
		}
	}
	return nil
}
