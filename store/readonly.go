package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

// ErrReadOnly is returned when something is to be written to a store that only answers reads; the error says why.
var ErrReadOnly = engine.ErrReadOnly

// OpenReadOnly opens a store that answers reads with what a snapshot holds and refuses writes with ErrReadOnly and the reason. It works on a
// copy in scratch, a directory that is made and that Close removes; neither cfg.Dir nor the snapshot is touched.
func OpenReadOnly(ctx context.Context, cfg Config, from snapshot.Info, scratch string, reason error) (*Store, error) {
	cfg = cfg.withDefaults()
	frozen, err := engine.OpenFrozen(ctx, engine.FrozenConfig{Database: databaseOf(from), Scratch: scratch, Reason: reason, Log: cfg.Log})
	if err != nil {
		return nil, fmt.Errorf("cannot read snapshot %s: %w", from.Path, err)
	}
	s, err := openOn(ctx, cfg, frozen)
	if err != nil {
		return nil, fmt.Errorf("cannot read snapshot %s: %w", from.Path, err)
	}
	return s, nil
}

// databaseOf writes a snapshot's database: all of the file but the checksum at its end.
func databaseOf(from snapshot.Info) func(context.Context, io.Writer) error {
	return func(_ context.Context, w io.Writer) error {
		f, err := os.Open(from.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(w, f, from.Size-sha256.Size)
		return err
	}
}
