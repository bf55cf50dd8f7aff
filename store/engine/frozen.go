package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"

	"github.com/nodeactor/nodeactor/store/boltcheck"
	"github.com/nodeactor/nodeactor/store/internal/guard"
)

// ErrReadOnly is returned when something is to be written while the store only answers reads.
var ErrReadOnly = errors.New("the store is read-only")

// FrozenConfig says what to read from.
type FrozenConfig struct {
	// Database writes the bytes of a database, without a checksum behind them, to a file.
	Database func(ctx context.Context, w io.Writer) error
	// Scratch is a directory that is made, holds a copy of the database, and is removed by Close; what is there already is removed.
	Scratch string
	// Reason is why nothing is written.
	Reason error
	Log    *slog.Logger
}

// Frozen is a Host over a copy of a database: it answers reads with what was when the copy was made, and refuses writes with ErrReadOnly and
// the reason. There is no log and no listener, and what it was copied from is not touched.
type Frozen struct {
	cfg    FrozenConfig
	db     backend.Backend
	kv     mvcc.KV
	failed *failure
}

var (
	_ Host = (*Frozen)(nil)
	_ Life = (*Frozen)(nil)
)

// OpenFrozen copies the database and opens the copy. The error is ErrDamaged when the copy is not whole.
func OpenFrozen(ctx context.Context, cfg FrozenConfig) (*Frozen, error) {
	f := &Frozen{cfg: cfg, failed: newFailure()}
	if err := f.open(ctx); err != nil {
		_ = os.RemoveAll(cfg.Scratch)
		return nil, fmt.Errorf("cannot open a copy of the store in %s: %w", cfg.Scratch, err)
	}
	return f, nil
}

// open runs the library in a goroutine of its own, as Member does.
func (f *Frozen) open(ctx context.Context) error {
	path, err := f.copy(ctx)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	g := guard.New(context.WithoutCancel(ctx), "frozen store", f.cfg.Log)
	g.Go("open", func(context.Context) error {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		f.load(path, newLogger(f.cfg.Log, f.failed))
		return nil
	}, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return errors.Join(f.failed.get(), err)
}

// copy makes the copy and checks it.
func (f *Frozen) copy(ctx context.Context) (path string, err error) {
	if err := errors.Join(os.RemoveAll(f.cfg.Scratch), os.MkdirAll(f.cfg.Scratch, dirMode)); err != nil {
		return "", err
	}
	path = filepath.Join(f.cfg.Scratch, "db")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.cfg.Database(ctx, out), out.Close()); err != nil {
		return "", err
	}
	if err := boltcheck.File(path); errors.Is(err, boltcheck.ErrCorrupt) {
		return "", fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

func (f *Frozen) load(path string, log *zap.Logger) {
	bc := backend.DefaultBackendConfig(log)
	bc.Path = path
	bc.UnsafeNoFsync = true // it is thrown away
	f.db = backend.New(bc)
	f.kv = mvcc.NewStore(log, f.db, &lease.FakeLessor{}, mvcc.StoreConfig{})
}

func (f *Frozen) refuse() error { return fmt.Errorf("%w: %w", ErrReadOnly, f.cfg.Reason) }

// Txn implements Engine: it refuses.
func (f *Frozen) Txn(context.Context, Write) (Result, error) { return Result{}, f.refuse() }

// Grant implements Engine: it refuses.
func (f *Frozen) Grant(context.Context, int64) (int64, error) { return 0, f.refuse() }

// Compact implements Engine: it refuses.
func (f *Frozen) Compact(context.Context, int64) error { return f.refuse() }

// Range implements Engine.
func (f *Frozen) Range(ctx context.Context, from, to string, revision, limit int64) (Page, error) {
	page, err := readPage(ctx, f.kv, from, to, revision, limit)
	switch {
	case errors.Is(err, mvcc.ErrCompacted):
		return Page{}, ErrCompacted
	case errors.Is(err, mvcc.ErrFutureRev):
		return Page{}, ErrFuture
	}
	return page, err
}

// Watch implements Engine: nothing happens any more.
func (f *Frozen) Watch(ctx context.Context, _, _ string, after int64, _ func(Batch) error) error {
	return f.Follow(ctx, "", after, nil)
}

// Follow implements Life: nothing happens any more.
func (f *Frozen) Follow(ctx context.Context, _ string, after int64, _ func(Batch) error) error {
	if after < f.Revision() {
		return ErrCompacted
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.failed.ch:
		return f.failed.err
	}
}

// History implements Engine. What happened before the copy was made is not told.
func (f *Frozen) History(_ context.Context, _, _ string, after, upto int64, _ int) ([]Change, int64, error) {
	if after >= upto {
		return nil, after, nil
	}
	return nil, after, ErrCompacted
}

// Barrier implements Engine.
func (f *Frozen) Barrier(context.Context) (int64, error) { return f.Revision(), f.Err() }

// Revision implements Engine.
func (f *Frozen) Revision() int64 { return f.kv.Rev() }

// Solo implements Engine.
func (f *Frozen) Solo() bool { return true }

// Snapshot implements Engine.
func (f *Frozen) Snapshot(ctx context.Context, w io.Writer) error {
	snap := f.db.Snapshot()
	defer func() { _ = snap.Close() }()
	if _, err := snap.WriteTo(ctxWriter{ctx, w}); err != nil {
		return fmt.Errorf("cannot write snapshot: %w", err)
	}
	return nil
}

// Status implements Engine.
func (f *Frozen) Status() Status {
	return Status{DBSize: f.db.Size(), DBInUse: f.db.SizeInUse(), Revision: f.Revision()}
}

// Failed implements Engine.
func (f *Frozen) Failed() <-chan struct{} { return f.failed.ch }

// Err implements Engine.
func (f *Frozen) Err() error { return f.failed.get() }

// Fail implements Life.
func (f *Frozen) Fail(err error) { f.failed.set(err) }

// Begin implements Host: there is one life.
func (f *Frozen) Begin(context.Context) (Life, error) { return f, f.Err() }

// Empty implements Host.
func (f *Frozen) Empty(context.Context) error { return nil }

// Close implements Engine, and removes the copy.
func (f *Frozen) Close(context.Context) error {
	f.failed.set(ErrClosed)
	return errors.Join(f.kv.Close(), f.db.Close(), os.RemoveAll(f.cfg.Scratch))
}
