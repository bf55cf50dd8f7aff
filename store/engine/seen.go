package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

const (
	// seenFile remembers, in the directory of an engine, the newest revision that anybody was told of.
	seenFile = "seen"
	// seenMagic begins it; the revision and its complement follow, 8 bytes each.
	seenMagic = 0x6e615f7365656e31
	seenSize  = 24
)

// seen is the record of the newest revision that left the engine. Whatever the disk has made of the log, one that ends before this revision
// has lost acknowledged writes, and nothing that is left in the log tells of it.
//
// It is written behind the log, without waiting for the disk: it outlives the process at once and the machine some time later, and is never
// ahead of what is true.
type seen struct {
	file     *os.File
	revision atomic.Int64
	wake     chan struct{}
}

func openSeen(path string) (*seen, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the record of revisions: %w", err)
	}
	s := &seen{file: f, wake: make(chan struct{}, 1)}
	s.revision.Store(readSeen(path))
	if err := s.write(s.revision.Load()); err != nil { // so that it has its place on the disk
		_ = f.Close()
		return nil, fmt.Errorf("cannot open the record of revisions: %w", err)
	}
	return s, nil
}

// openSeen begins to record what leaves the member.
func (m *Member) openSeen(dir string) (err error) {
	if m.seen, err = openSeen(filepath.Join(dir, seenFile)); err == nil {
		m.group.Go("record of revisions", m.seen.keep, nil)
	}
	return err
}

// readSeen returns the recorded revision; 0 when there is none, or none that can be believed.
func readSeen(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < seenSize || binary.LittleEndian.Uint64(b) != seenMagic {
		return 0
	}
	revision, check := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if check != ^revision || int64(revision) < 0 {
		return 0
	}
	return int64(revision)
}

// note takes down that a revision is about to be told.
func (s *seen) note(revision int64) {
	for have := s.revision.Load(); revision > have; have = s.revision.Load() {
		if s.revision.CompareAndSwap(have, revision) {
			select {
			case s.wake <- struct{}{}:
			default:
			}
			return
		}
	}
}

// keep writes what was noted until ctx ends.
func (s *seen) keep(ctx context.Context) error {
	defer s.file.Close()
	for {
		select {
		case <-s.wake:
			if err := s.write(s.revision.Load()); err != nil {
				return fmt.Errorf("cannot record the newest revision: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *seen) write(revision int64) error {
	b := make([]byte, seenSize)
	binary.LittleEndian.PutUint64(b, seenMagic)
	binary.LittleEndian.PutUint64(b[8:], uint64(revision))
	binary.LittleEndian.PutUint64(b[16:], ^uint64(revision))
	_, err := s.file.WriteAt(b, 0)
	return err
}
