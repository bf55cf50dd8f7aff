package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/store/snapshot"
)

// Verdict says how a node comes up whose store cannot be repaired without loss.
type Verdict int

const (
	// ReadOnly answers reads with the newest good snapshot and refuses writes.
	ReadOnly Verdict = iota
	// Unreadable refuses reads and writes: there is nothing to answer with.
	Unreadable
	// FallBack makes the store anew from the newest good snapshot.
	FallBack
	// Refuse ends the start: data loss is accepted, and there is nothing to go on from.
	Refuse
)

// Choose decides from what there is to fall back to, and whether somebody has accepted the loss.
func Choose(snapshot, accepted bool) Verdict {
	switch {
	case accepted && snapshot:
		return FallBack
	case accepted:
		return Refuse
	case snapshot:
		return ReadOnly
	}
	return Unreadable
}

// Damage is what is known of a store that cannot be opened without loss.
type Damage struct {
	// Err names the file and what is wrong with it.
	Err error
	// Good is the newest snapshot that verifies; nil when there is none, and None says why.
	Good *snapshot.Info
	None error
	// Known is the newest revision that anybody was told of, 0 when that is not known. Last is when the store was last written to.
	Known int64
	Last  time.Time
}

// salvaged is the reason in the name of a snapshot of what a damaged store still has: its database is whole, its log is not.
const salvaged = "salvaged"

// Assess finds out what there is to fall back to in the directory of snapshots, for a store whose opening failed with err. When the database
// of the store itself is whole and only its log is damaged, that is saved first: it is newer than any other snapshot. The damaged files are
// read only.
func Assess(ctx context.Context, cfg Config, snapshots string, err error) Damage {
	cfg = cfg.withDefaults()
	d := Damage{Err: err, Known: engine.LastKnown(cfg.Dir), Last: lastWritten(cfg.Dir)}
	if err := salvage(ctx, cfg, snapshots); err != nil && !errors.Is(err, fs.ErrNotExist) {
		cfg.Log.Info("nothing newer than the snapshots can be read from the damaged store", "dir", cfg.Dir, "why", err)
	}
	good, err := snapshot.Newest(ctx, snapshots)
	if err != nil {
		d.None = err
		return d
	}
	d.Good, d.Known = &good, max(d.Known, good.Revision)
	return d
}

// salvage saves what the store's database holds, unless the newest snapshot has as much.
func salvage(ctx context.Context, cfg Config, snapshots string) error {
	have, _ := snapshot.Newest(ctx, snapshots)
	source, size, err := snapshot.Stopped(cfg.Dir)
	if err != nil {
		return err
	}
	info, err := snapshot.Save(ctx, snapshots, salvaged, source, snapshot.SaveOptions{Clock: cfg.Clock, Size: size})
	if err != nil {
		return err
	}
	if info.Revision <= have.Revision {
		return os.Remove(info.Path)
	}
	cfg.Log.Warn("the damaged store's database is whole and was saved", "snapshot", info.Path, "revision", info.Revision)
	return nil
}

// lastWritten is when a file below dir was last written to.
func lastWritten(dir string) (last time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}

// Restore makes the store anew from the newest good snapshot, at a revision above every one that a client may have seen. The damaged store
// is kept beside it.
func (d Damage) Restore(ctx context.Context, cfg Config) (snapshot.Restored, error) {
	cfg = cfg.withDefaults()
	return snapshot.Restore(ctx, d.Good.Path, cfg.Dir, snapshot.Options{NodeName: cfg.NodeName, MinRevision: d.Known, Aside: true, Clock: cfg.Clock, Log: cfg.Log})
}

// AsOf is the time, in UTC, whose state the newest good snapshot has.
func (d Damage) AsOf() time.Time {
	if d.Good.Reason == salvaged && d.Last.Before(d.Good.Time) {
		return d.Last.UTC()
	}
	return d.Good.Time.UTC()
}

// Lost says what is not in the newest good snapshot.
func (d Damage) Lost() string {
	from := fmt.Sprintf("after revision %d (%s)", d.Good.Revision, d.AsOf().Format(time.RFC3339))
	switch {
	case d.Known > d.Good.Revision:
		return fmt.Sprintf("what was written %s, up to revision %d (%s)", from, d.Known, d.Last.UTC().Format(time.RFC3339))
	case d.Last.IsZero():
		return "whatever was written " + from
	}
	return fmt.Sprintf("whatever was written %s; the store was last written to at %s", from, d.Last.UTC().Format(time.RFC3339))
}
