package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// suspectAfter is how long a member that is alone may be without a leader before its log is suspected: an election that nobody contests
// takes a tenth of a second.
const suspectAfter = 3 * time.Second

// errBehind is returned when the log ends before what the database holds already.
var errBehind = errors.New("its end is missing")

// appliedIndex is the last log entry that the database has taken in, 0 for an empty one.
func appliedIndex(tx *bbolt.Tx) uint64 {
	b := tx.Bucket(schema.Meta.Name())
	if b == nil {
		return 0
	}
	if v := b.Get(schema.MetaConsistentIndexKeyName); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// waitLeader waits for ready. When that takes too long the log may have lost its end, and with it the entry that says who the members
// are: then no leader will ever come.
func (m *Member) waitLeader(ctx context.Context, dir string, applied uint64) error {
	soon, cancel := context.WithTimeout(ctx, suspectAfter)
	err := m.waitSettled(soon)
	cancel()
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	if last, err := lastIndex(dir); err == nil && last < applied {
		return damage(newestLog(dir), fmt.Errorf("%w: it ends at entry %d, the database has %d", errBehind, last, applied))
	}
	return m.waitSettled(ctx)
}

// lastIndex is the index of the last entry in the log.
func lastIndex(dir string) (uint64, error) {
	logs := logDir(dir)
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), logs)
	if err != nil {
		return 0, err
	}
	from := &walpb.Snapshot{}
	if len(snapshots) > 0 {
		from = snapshots[len(snapshots)-1]
	}
	w, err := wal.OpenForRead(zap.NewNop(), logs, from)
	if err != nil {
		return 0, err
	}
	defer func() { _ = w.Close() }()
	_, _, entries, err := w.ReadAll()
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 {
		return from.GetIndex(), nil
	}
	return entries[len(entries)-1].GetIndex(), nil
}

// checkLog refuses a segment without content, at which the library stumbles: it writes a segment's head before it gives it its name.
func checkLog(dir string) error {
	for _, path := range segments(dir) {
		if info, err := os.Stat(path); err == nil && info.Size() == 0 {
			return damage(path, errors.New("it is empty"))
		}
	}
	return nil
}
