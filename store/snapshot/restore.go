package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// revisionStep is how far above the newest known revision a restored store begins. Nobody knows how many revisions were handed out after
	// what is known; etcd's documents advise this number, and an int64 has room for nine thousand million of it.
	revisionStep = 1_000_000_000
)

// Options say how to restore.
type Options struct {
	NodeName    string // name of the store's member
	MinRevision int64  // newest revision that a client may have seen, as far as the caller knows; 0 = nothing is known
	// Aside allows that a store is there already; it is kept as DIR.before-restore-TIME.
	Aside    bool
	Clock    supervision.Clock // nil = the machine's
	Log      *slog.Logger      // nil = the default one
	Progress func(step string) // is told what is being done; may be nil

	at func(step string) // for tests
}

// Restored is what a restore has made.
type Restored struct {
	Snapshot Info   // what it was made from
	Revision int64  // at which the store begins; everything before it counts as compacted
	Aside    string // where the store that was there is now; empty when there was none
}

// Restore makes the store in dir, a directory that is empty or absent, from the snapshot at path. The store begins above every revision that a
// client can have seen: above Options.MinRevision, what the store that is there holds, and what earlier restores began with. Watches from
// before are answered as compacted.
//
// It is built beside dir and comes to its place in one step: whenever it is interrupted, dir is as before or restored; Settle ends the rest.
// ErrLocked when a node runs, ErrNotEmpty when there is a store and Options.Aside is not set, ErrDamaged when the snapshot is not whole.
func Restore(ctx context.Context, path, dir string, o Options) (Restored, error) {
	r, err := restore(ctx, path, dir, o.withDefaults())
	if err != nil {
		return Restored{}, fmt.Errorf("cannot restore store %s: %w", dir, err)
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = supervision.RealClock()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.at == nil {
		o.at = func(string) {}
	}
	return o
}

func restore(ctx context.Context, path, dir string, o Options) (Restored, error) {
	if o.NodeName == "" {
		return Restored{}, errors.New("no node name is given")
	}
	release, err := engine.Lock(dir)
	if err != nil {
		return Restored{}, err
	}
	ended, r, err := restoreLocked(ctx, path, dir, o)
	if err == nil || ended == nil {
		release()
		return r, err
	}
	// Whatever still writes beside the store keeps others from doing so.
	supervision.NewGroup(context.WithoutCancel(ctx), "restore", nil).Go("unlock", func(context.Context) error {
		<-ended
		release()
		return nil
	})
	return r, err
}

// restoreLocked restores with the lock of dir held. A channel that it returns is closed when nothing writes beside dir any more.
func restoreLocked(ctx context.Context, path, dir string, o Options) (<-chan struct{}, Restored, error) {
	if err := settle(dir, o); err != nil {
		return nil, Restored{}, err
	}
	vacant, err := engine.Vacant(dir)
	if err != nil {
		return nil, Restored{}, err
	}
	if !vacant && !o.Aside {
		return nil, Restored{}, ErrNotEmpty
	}
	o.Progress("verifying " + path)
	info, err := Verify(ctx, path)
	if err != nil {
		return nil, Restored{}, err
	}
	r := Restored{Snapshot: info, Revision: beginning(info, dir, o)}
	o.Progress("building the store")
	if ended, err := build(ctx, r, dir, o); err != nil {
		return tidy(dir, ended), Restored{}, err
	}
	o.Progress("putting the store in its place")
	r.Aside, err = exchange(dir, o)
	return nil, r, err
}

// tidy removes what a failed build has left, unless something still writes there; then it returns the channel that tells when it ends.
func tidy(dir string, ended <-chan struct{}) <-chan struct{} {
	if ended != nil {
		select {
		case <-ended:
		default:
			return ended
		}
	}
	_ = os.RemoveAll(placesOf(dir).building)
	return nil
}

// beginning is the revision at which a store restored from a snapshot begins.
func beginning(info Info, dir string, o Options) int64 {
	return max(info.Revision, o.MinRevision, lastKnown(dir), floor(dir)) + revisionStep
}

// lastKnown is the newest revision that the store in dir is known to have told, as far as its files can be read.
func lastKnown(dir string) int64 {
	known := engine.LastKnown(dir)
	path := engine.DatabaseFile(dir)
	if _, err := os.Stat(path); err != nil {
		return known
	}
	if found, err := checkDatabase(path); err == nil {
		return max(known, found.newest)
	}
	return known
}

// build makes the new store beside dir, whole and on disk. The channel is closed when nothing writes there any more.
func build(ctx context.Context, r Restored, dir string, o Options) (<-chan struct{}, error) {
	if free, need := engine.FreeBytes(filepath.Dir(dir)), r.Snapshot.Size+engine.RoomToOpen(); free < need {
		return nil, fmt.Errorf("%w: the disk has %d MB free and the restored store needs %d MB", ErrNoSpace, free>>20, need>>20)
	}
	found, err := lastRevisions(r.Snapshot.Path)
	if err != nil {
		return nil, err
	}
	at := placesOf(dir)
	o.at("begin")
	ended, err := engine.Rebuild(ctx, engine.RebuildConfig{File: r.Snapshot.Path, Dir: at.building, NodeName: o.NodeName, Bump: r.Revision - found.stored, Log: o.Log})
	if err != nil {
		return ended, full(err)
	}
	o.at("built")
	if err := raiseFloor(dir, r.Revision); err != nil {
		return nil, full(err)
	}
	o.at("floor raised")
	if err := writeSynced(filepath.Join(at.building, markFile), []byte(r.Snapshot.Name()+"\n")); err != nil {
		return nil, full(err)
	}
	o.at("marked")
	if err := errors.Join(os.Rename(at.building, at.restored), syncDir(filepath.Dir(dir))); err != nil {
		return nil, err
	}
	o.at("ready")
	return nil, nil
}
