package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/nodeactor/nodeactor/store/internal/guard"
)

// RebuildConfig says what to build a member's files from.
type RebuildConfig struct {
	File     string // the database with its checksum behind it, as Snapshot and etcd's tools write it
	Dir      string // absent or empty; made
	NodeName string // name of the member
	Bump     int64  // how much further than the last change the database has the member begins; all before it counts as compacted
	Log      *slog.Logger
}

// Rebuild makes the files of a member that is alone in a new cluster and holds what a snapshot holds. They are on disk when it returns nil.
// When it returns anything else, or ctx ends first, the directory is of no use, and may still be written to until done is closed.
func Rebuild(ctx context.Context, cfg RebuildConfig) (done <-chan struct{}, err error) {
	failed, ended := newFailure(), make(chan struct{})
	result := make(chan error, 1)
	g := guard.New(context.WithoutCancel(ctx), "rebuild", cfg.Log)
	g.Go("rebuild", func(context.Context) error {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		return rebuild(cfg, failed)
	}, func(err error) { result <- err; close(ended) })
	select {
	case err = <-result:
		if fatal := failed.get(); fatal != nil {
			err = fatal
		}
	case <-failed.ch:
		err = failed.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		err = syncTree(cfg.Dir)
	}
	if err != nil {
		return ended, fmt.Errorf("cannot build the files of a member in %s: %w", cfg.Dir, err)
	}
	return ended, nil
}

func rebuild(cfg RebuildConfig, failed *failure) error {
	return snapshot.NewV3(newLogger(cfg.Log, failed)).Restore(snapshot.RestoreConfig{
		SnapshotPath:        cfg.File,
		Name:                cfg.NodeName,
		OutputDataDir:       cfg.Dir,
		PeerURLs:            []string{peerURL},
		InitialCluster:      cfg.NodeName + "=" + peerURL,
		InitialClusterToken: rand.Text(),
		RevisionBump:        uint64(cfg.Bump),
		MarkCompacted:       true,
	})
}

// Lock takes the directory of an engine, which it makes, for a caller that changes its files; ErrLocked when somebody has it. The lock is
// that of the directory as it is now, wherever it is moved.
func Lock(dir string) (release func(), err error) {
	f, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot lock store %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// Vacant reports whether the directory of an engine holds nothing but its lock.
func Vacant(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return false, err
	}
	for _, e := range entries {
		if e.Name() != lockFile {
			return false, nil
		}
	}
	return true, nil
}

// DatabaseFile is the path of the database in the directory of an engine.
func DatabaseFile(dir string) string { return filepath.Join(dir, memberDir, "snap", "db") }

// FreeBytes is what this process may still write to the file system of dir.
func FreeBytes(dir string) int64 { return freeBytes(dir) }

// RoomToOpen is how much must be free beside the files of an engine for it to be opened, in bytes.
func RoomToOpen() int64 { return openBytes + wal.SegmentSizeBytes }

// syncTree brings all files and directories below dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncDir(path)
	})
}

// LastKnown is the newest revision that the files of a stopped engine tell of without being opened: that which was recorded as told to
// somebody. It is 0 when nothing is known.
func LastKnown(dir string) int64 { return readSeen(filepath.Join(dir, seenFile)) }

// Unapplied is how many entries the log of a stopped engine has that its database, which has passed its check, has not taken in.
func Unapplied(dir string) (uint64, error) {
	applied, _, err := readState(DatabaseFile(dir))
	if err != nil {
		return 0, err
	}
	log, err := readJournal(dir)
	if err != nil || max(log.last, log.base) < applied {
		return 0, err
	}
	return max(log.last, log.base) - applied, nil
}
