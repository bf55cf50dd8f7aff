package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/nodeactor/nodeactor/store/boltcheck"
	"github.com/nodeactor/nodeactor/store/engine"
)

// Stopped is a source that reads the files of the store in dir, which nobody may have open, and about how many bytes it writes. The store is
// not changed. Writes that a killed process had only in its log are not among what is saved; see Missing. The error is os.ErrNotExist when
// there is no store, ErrDamaged when its database is not whole.
func Stopped(dir string) (Source, int64, error) {
	path := engine.DatabaseFile(dir)
	stat, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read store %s: %w", dir, err)
	}
	return func(ctx context.Context, w io.Writer) error {
		release, err := engine.Lock(dir)
		if err != nil {
			return err
		}
		defer release()
		if err := boltcheck.File(path); errors.Is(err, boltcheck.ErrCorrupt) {
			return fmt.Errorf("the store's database %s is %w: %w", path, ErrDamaged, err)
		} else if err != nil {
			return err
		}
		return copyDatabase(ctx, path, w)
	}, stat.Size(), nil
}

// copyDatabase writes what the database at path has to say to w.
func copyDatabase(ctx context.Context, path string, w io.Writer) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true, Timeout: openTimeout})
	if err != nil {
		return fmt.Errorf("cannot open database %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(writer{ctx, w})
		return err
	})
}

// Missing is how many entries the log of the stopped store in dir has that its database has not taken in: none after an orderly stop. The next
// start of the node takes them in.
func Missing(dir string) (uint64, error) {
	n, err := engine.Unapplied(dir)
	if err != nil {
		return 0, fmt.Errorf("cannot read the log of store %s: %w", dir, err)
	}
	return n, nil
}
