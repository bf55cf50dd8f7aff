package node

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/snapshot"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// snapshotLook is how often it is looked whether it is time for a snapshot; a node that just started gets as long to settle.
	snapshotLook = time.Minute
	// snapshotRetry is when one that failed is tried again.
	snapshotRetry = 5 * time.Minute
	// snapshotSilence is how long the disk may take no byte of one.
	snapshotSilence = 2 * time.Minute
	// StoreDir is the name of the store's directory in the data directory.
	StoreDir = "store"
)

// saver saves the store into the data directory's snapshots, one at a time.
type saver struct {
	dir    string
	every  time.Duration // between two automatic ones; 0 = none
	keep   int
	source func() *store.Store // nil while there is none
	clock  supervision.Clock
	log    *slog.Logger
	events record.EventRecorder
	node   *corev1.ObjectReference

	turn chan struct{} // whoever has put its token in saves

	mu     sync.Mutex
	latest snapshot.Info // zero = not known yet
	// failing is why the last save failed, nil when it did not.
	failing      error
	saved, wrong int
	took         time.Duration
}

// newSaver makes the saver of a node. Events may be set later.
func newSaver(cfg Config, source func() *store.Store, clock supervision.Clock, log *slog.Logger) *saver {
	every, _ := snapshotPeriod(cfg.SnapshotEvery) // validated
	return &saver{
		dir: filepath.Join(cfg.DataDir, snapshot.Dir), every: every, keep: cfg.SnapshotKeep, source: source, clock: clock, log: log,
		node: &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: cfg.NodeName, UID: types.UID(cfg.NodeName)}, turn: make(chan struct{}, 1),
	}
}

// save saves the store and removes what is too old. Progress may be nil; concurrent callers wait for one another.
func (s *saver) save(ctx context.Context, reason string, progress func(written, total int64)) (snapshot.Info, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return snapshot.Info{}, ctx.Err()
	}
	begin := s.clock.Now()
	info, err := s.write(ctx, reason, progress)
	if err == nil {
		s.prune(info)
	}
	s.note(info, s.clock.Now().Sub(begin), err)
	return info, err
}

func (s *saver) write(ctx context.Context, reason string, progress func(written, total int64)) (snapshot.Info, error) {
	from := s.source()
	if from == nil {
		return snapshot.Info{}, ErrNotUp
	}
	size := from.Status().DBSize
	if reason != snapshot.Manual {
		s.makeRoom(ctx, size)
	}
	o := snapshot.SaveOptions{Clock: s.clock, Size: size}
	if progress != nil {
		o.Progress = func(written int64) { progress(written, size) }
	}
	return snapshot.Save(ctx, s.dir, reason, from.Snapshot, o)
}

// makeRoom gives up old snapshots for a new one when the disk is full. The new one says why if that was not enough.
func (s *saver) makeRoom(ctx context.Context, size int64) {
	removed, err := snapshot.MakeRoom(ctx, s.dir, size)
	if err != nil {
		s.log.Warn("cannot make room for a snapshot", "reason", err)
	}
	if len(removed) > 0 {
		s.log.Warn("old snapshots were removed: the disk has no room for a new one", "removed", len(removed), "last", removed[len(removed)-1].Name())
	}
}

// prune removes what is too old, now that there is a new one that was just proved.
func (s *saver) prune(good snapshot.Info) {
	removed, err := snapshot.Prune(s.dir, s.keep, good)
	if err != nil {
		s.log.Warn("cannot remove old snapshots", "reason", err)
	}
	for _, old := range removed {
		s.log.Info("an old snapshot was removed", "name", old.Name())
	}
}

// note keeps what became of a save, and tells when that is news.
func (s *saver) note(info snapshot.Info, took time.Duration, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	s.mu.Lock()
	before := s.failing
	s.failing = err
	if err == nil {
		s.latest, s.took = info, took
		s.saved++
	} else {
		s.wrong++
	}
	s.mu.Unlock()
	switch {
	case err == nil:
		s.log.Info("the store was saved", "snapshot", info.Name(), "bytes", info.Size, "took", took.Round(time.Millisecond))
		if before != nil {
			s.tell(corev1.EventTypeNormal, "SnapshotSaved", "The store is saved again: "+info.Name())
		}
	case before == nil || before.Error() != err.Error():
		s.log.Warn("the store cannot be saved", "reason", err, "next try", min(snapshotRetry, s.every))
		if before == nil {
			s.tell(corev1.EventTypeWarning, "SnapshotFailed", err.Error())
		}
	}
}

func (s *saver) tell(kind, reason, message string) {
	if s.events != nil {
		s.events.Event(s.node, kind, reason, message)
	}
}

// last is the newest snapshot, as far as its name tells.
func (s *saver) last() (snapshot.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.latest.Time.IsZero() {
		return s.latest, nil
	}
	info, _, err := snapshot.Latest(s.dir)
	s.latest = info
	return info, err
}

// wait is how long to wait before it is looked again, 0 when it is time to save: enough time has passed and something was written since.
func (s *saver) wait(now time.Time) time.Duration {
	last, err := s.last()
	if err != nil {
		return 0 // saving will say the same
	}
	if left := last.Time.Add(s.every).Sub(now); left > 0 && left <= s.every {
		return left
	}
	if from := s.source(); from == nil || from.Err() != nil || from.Revision() == last.Revision || errors.Is(from.Refusal(), store.ErrStalled) {
		return min(snapshotLook, s.every)
	}
	return 0
}

// periodic saves if it is time, and returns when to look again. That it cannot is told, and no fault.
func (s *saver) periodic(ctx context.Context, beat func()) time.Duration {
	if left := s.wait(s.clock.Now()); left > 0 {
		return left
	}
	if _, err := s.save(ctx, snapshot.Periodic, func(int64, int64) { beat() }); err != nil {
		return min(snapshotRetry, s.every)
	}
	return s.every
}

// before saves the store before its members change.
func (s *saver) before(ctx context.Context) error {
	_, err := s.save(ctx, snapshot.Membership, nil)
	return err
}

// archive is the actor that saves the store when it is time.
type archive struct{ *saver }

// Receive implements supervision.Handler.
func (a archive) Receive(ctx supervision.Context, msg any) error {
	switch m := msg.(type) {
	case supervision.Started:
		ctx.After(min(snapshotLook, a.every), tick{})
	case tick:
		ctx.Go(supervision.Job{Name: "snapshot", BeatWithin: snapshotSilence, Run: func(c context.Context, beat func()) (any, error) {
			return a.periodic(c, beat), nil
		}})
	case supervision.JobDone:
		if m.Err != nil {
			return m.Err
		}
		ctx.After(m.Value.(time.Duration), tick{})
	}
	return nil
}
