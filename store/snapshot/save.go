package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/supervision"
)

// unfinished is the pattern of the names of files that are being written. Their writer holds a lock on them, which ends with its process.
const unfinished = ".nodeactor-snapshot-*.tmp"

// Source writes a consistent copy of a store's database to w: the bytes of the file, and behind them their checksum or nothing.
type Source func(ctx context.Context, w io.Writer) error

// SaveOptions may be zero.
type SaveOptions struct {
	Clock    supervision.Clock   // nil = the machine's
	Size     int64               // of what the source is going to write, if that is known: one that has no room is not begun
	Progress func(written int64) // is told now and then how many bytes are written; may be nil
}

func (o SaveOptions) now() time.Time {
	if o.Clock == nil {
		o.Clock = supervision.RealClock()
	}
	return o.Clock.Now().UTC().Truncate(time.Second)
}

// Save writes what source has into a new snapshot in dir, which is made if it is absent. On an error nothing is left behind; ErrNoSpace when
// the disk would have too little left for the store. What a crash has left in dir is removed first.
func Save(ctx context.Context, dir, reason string, source Source, o SaveOptions) (Info, error) {
	err := os.MkdirAll(dir, dirMode)
	if err == nil {
		err = os.Chmod(dir, dirMode)
	}
	if err != nil {
		return Info{}, fmt.Errorf("cannot save snapshot: %w", err)
	}
	return SaveIn(ctx, dir, reason, source, o)
}

// SaveIn is Save into a directory that exists and whose mode is left alone.
func SaveIn(ctx context.Context, dir, reason string, source Source, o SaveOptions) (Info, error) {
	if !reasonForm.MatchString(reason) {
		return Info{}, fmt.Errorf("cannot save snapshot: the reason %q is not of small letters, digits and dashes", reason)
	}
	return write(ctx, dir, source, o, func(i Info) (Info, string) {
		i.Reason = reason
		return i, nameOf(i)
	})
}

// WriteFile is Save into the file at path, which it replaces in one step.
func WriteFile(ctx context.Context, path string, source Source, o SaveOptions) (Info, error) {
	return write(ctx, filepath.Dir(path), source, o, func(i Info) (Info, string) {
		i.Reason = Manual
		return i, filepath.Base(path)
	})
}

// write saves into dir under the name that finish gives the snapshot.
func write(ctx context.Context, dir string, source Source, o SaveOptions, finish func(Info) (Info, string)) (Info, error) {
	sweep(dir)
	f, err := os.CreateTemp(dir, unfinished)
	if err != nil {
		return Info{}, fmt.Errorf("cannot save snapshot: %w", err)
	}
	info := Info{Time: o.now()}
	err = fill(ctx, f, source, o, &info)
	if err == nil {
		var name string
		info, name = finish(info)
		info.Path = filepath.Join(dir, name)
		err = os.Rename(f.Name(), info.Path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()), f.Close())
		return Info{}, fmt.Errorf("cannot save snapshot in %s: %w", dir, err)
	}
	if err := errors.Join(f.Close(), syncDir(dir)); err != nil {
		return Info{}, fmt.Errorf("cannot save snapshot in %s: %w", dir, err)
	}
	return info, nil
}

// fill writes the file, brings it to disk and proves it.
func fill(ctx context.Context, f *os.File, source Source, o SaveOptions, info *Info) error {
	// Shared, because reading the database takes a shared lock too.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		return err
	}
	s := newSink(ctx, f, o.Progress)
	if err := s.room(o.Size); err != nil {
		return err
	}
	if err := source(ctx, s); err != nil {
		return err
	}
	if err := s.finish(); err != nil {
		return err
	}
	info.Size = s.written
	found, err := checkDatabase(f.Name())
	info.Revision = found.newest
	return err
}

// sweep removes files that nobody is writing any more.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, unfinished))
	for _, path := range left {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(path)
		}
		_ = f.Close()
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
