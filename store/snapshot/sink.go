package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"syscall"

	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// spareBytes stay free on the disk while a snapshot is written: more than the store's own reserve, which is for its writes, and enough for
	// the store to be opened again.
	spareBytes = 64 << 20
	// lookEvery is how many bytes are written between two looks at the free space.
	lookEvery = 1 << 20
	// syncEvery is how many bytes are written between two syncs. All at once at the end would hold up the syncs of the store's log.
	syncEvery = 8 << 20
)

// sink writes a file, sums it up and keeps away from the end of the disk.
type sink struct {
	ctx                     context.Context
	f                       *os.File
	sum                     hash.Hash
	tail                    []byte // the last bytes, which are not in sum yet: they may be a checksum
	progress                func(int64)
	written, looked, synced int64
}

func newSink(ctx context.Context, f *os.File, progress func(int64)) *sink {
	if progress == nil {
		progress = func(int64) {}
	}
	return &sink{ctx: ctx, f: f, sum: sha256.New(), progress: progress}
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.written-s.looked >= lookEvery {
		if err := s.look(); err != nil {
			return 0, err
		}
	}
	n, err := s.f.Write(p)
	s.add(p[:n])
	s.written += int64(n)
	return n, full(err)
}

// add sums up all but the last bytes.
func (s *sink) add(p []byte) {
	s.tail = append(s.tail, p...)
	if more := len(s.tail) - sumSize; more > 0 {
		s.sum.Write(s.tail[:more])
		s.tail = append(s.tail[:0], s.tail[more:]...)
	}
}

// look tells how far it is, sees whether there is room for what follows, and now and then brings what there is to disk.
func (s *sink) look() error {
	s.looked = s.written
	s.progress(s.written)
	if s.written-s.synced >= syncEvery {
		s.synced = s.written
		if err := s.f.Sync(); err != nil {
			return full(err)
		}
	}
	return s.room(lookEvery)
}

// room refuses n further bytes that would come too near to the end of the disk.
func (s *sink) room(n int64) error {
	if free := engine.FreeBytes(filepath.Dir(s.f.Name())); free < n+spareBytes {
		return fmt.Errorf("%w: the disk has %d MB free; it takes %d MB and %d MB stay free for the store", ErrNoSpace, free>>20, n>>20, int64(spareBytes)>>20)
	}
	return nil
}

// finish appends the checksum, or compares the one that came with the bytes, and brings all to disk.
func (s *sink) finish() error {
	switch {
	case s.written > sumSize && s.written%sectorSize == sumSize:
		if !bytes.Equal(s.sum.Sum(nil), s.tail) {
			return fmt.Errorf("what has arrived is %w: its checksum is not that of its content", ErrDamaged)
		}
	case s.written == 0 || s.written%sectorSize != 0:
		return fmt.Errorf("what has arrived is %w: %d bytes are not a database", ErrDamaged, s.written)
	default:
		s.sum.Write(s.tail)
		n, err := s.f.Write(s.sum.Sum(nil))
		s.written += int64(n)
		if err != nil {
			return full(err)
		}
	}
	s.progress(s.written)
	return full(s.f.Sync())
}

// full gives a full disk its name.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, cause(err))
	}
	return err
}
