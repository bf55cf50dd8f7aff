package kube

import (
	"context"
	"errors"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
)

// syncDeadline bounds the wait for the cache to show what was written before.
const syncDeadline = 10 * time.Second

// source gives the engine the manifests of a controller from the cache.
type source struct {
	controller *Controller
	deps       Deps
	served     *served
}

// Ready implements engine.Awaiting: every kind that is read has to be served.
func (s *source) Ready() bool { return s.served.yes() }

// Subscribe implements engine.Source.
func (s *source) Subscribe(notify func()) engine.Feed {
	s.served.listen(notify)
	return &feed{source: s, changes: s.deps.Cache.SubscribeFunc(notify, s.controller.kinds()...)}
}

// Sync implements engine.Source.
func (s *source) Sync(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	if err := s.deps.Cache.Sync(ctx); err != nil {
		return 0, err
	}
	return uint64(s.deps.Cache.Applied()), nil
}

// Has implements engine.Source.
func (s *source) Has(key Key) bool { return s.controller.live(s.deps.Cache, key) }

// Keys implements engine.Source. What changes concern a manifest is not known of manifests, only of changes: the revisions stay open.
func (s *source) Keys(visit func(Key, uint64) bool) {
	for _, key := range s.controller.keys(s.deps.Cache) {
		if !visit(key, 0) {
			return
		}
	}
}

// feed turns changes into wakes.
type feed struct {
	source  *source
	changes *cache.Feed
}

// Close implements engine.Feed.
func (f *feed) Close() { f.changes.Close() }

// Take implements engine.Feed. The breaker learns of every change on the way.
func (f *feed) Take() ([]engine.Wake, error) {
	changes, err := f.changes.Take()
	if errors.Is(err, cache.ErrLost) {
		return nil, engine.ErrLost
	}
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	return f.source.wakes(changes), nil
}

// wakes lists the manifests that changes concern.
func (s *source) wakes(changes []cache.Change) []engine.Wake {
	woken := s.controller.wakes(s.deps.Cache, changes, func(key Key, change cache.Change) {
		s.deps.Breaker.woken(writerOf(s.controller.Name, key), change)
	})
	for i := range changes {
		s.judgeEnd(&changes[i])
	}
	wakes := make([]engine.Wake, len(woken))
	for i, w := range woken {
		wakes[i] = engine.Wake{Key: w.key, Revision: uint64(w.revision)}
		if w.own == nil {
			continue
		}
		wakes[i].Mends = func() bool { return mends(w.own) }
		if replaces(w.own) {
			s.deps.Breaker.forgive(writerOf(s.controller.Name, w.key))
		}
	}
	return wakes
}
