package session_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestFaultsOfTheActor: whatever befalls the actor or a job of it, nobody but the next generation writes after it, and all that was held is held again.
func TestFaultsOfTheActor(t *testing.T) {
	type fault struct {
		job  string
		kind supervision.FaultKind
	}
	faults := []fault{{"", supervision.Panic}, {"", supervision.Hang}, {"", supervision.ErrorReturn}}
	for _, job := range []string{"read", "renew", "append"} {
		faults = append(faults, fault{job, supervision.Panic}, fault{job, supervision.ErrorReturn})
	}
	for _, f := range faults {
		t.Run(fmt.Sprint(f.kind, " ", f.job), func(t *testing.T) {
			harness.Sim(t, func(k *harness.Kit) {
				w := newWorld(k, 6)
				a := w.start("a")
				k.Advance(5 * time.Second)
				old := maps.Clone(a.running)
				switch {
				case f.job == "":
					k.Expect("a/session", f.kind)
					k.Inject("a/session", 1, f.kind)
				case f.kind == supervision.Panic || f.job == "append":
					k.Expect("a/session", f.kind)
					fallthrough
				default:
					k.InjectJob("a/session", f.job, 1, f.kind)
					defer func(n int) { w.add(n) }(99)
				}
				if f.kind == supervision.Hang {
					k.AllowAbandoned()
				}
				if f.job == "read" { // which is done again in the next generation only
					k.Allow("a/session", supervision.Panic)
					k.Inject("a/session", 2, supervision.Panic)
				}
				w.add(50) // for something to append
				k.Advance(3 * time.Minute)
				w.want(7)
				w.onlyTheNewest(a, old)
			}, harness.Seeds(5))
		})
	}
}

// onlyTheNewest holds that what was begun before may write only if its lease was not taken since.
func (w *world) onlyTheNewest(p *process, old map[string]lease.Fence) {
	for _, m := range sorted(old) {
		now, err := w.store.Lease(w.k.Context(), m)
		if err != nil {
			w.k.Fatalf("cannot read the lease: %v", err)
		}
		if err := p.write(old[m]); (err == nil) != (old[m].Epoch == now.Epoch) {
			w.k.Fatalf("epoch %d of %s, the lease is at %d: %v", old[m].Epoch, m, now.Epoch, err)
		}
	}
}

// moody is a store that is away now and then: it answers with an error, before or after it did what it was asked for, or answers late.
type moody struct {
	storage.Store
	k    *harness.Kit
	calm bool
}

var errMood = errors.New("not now")

// mood may hold a call up; before and after tell where it fails.
func (m *moody) mood(ctx context.Context) (before, after bool) {
	if m.calm {
		return false, false
	}
	if m.k.Rand().IntN(4) == 0 {
		_ = m.k.Clock().Sleep(ctx, time.Duration(m.k.Rand().IntN(8000))*time.Millisecond)
	}
	switch m.k.Rand().IntN(6) {
	case 0:
		return true, false
	case 1:
		return false, true
	}
	return false, false
}

func moodily[T any](m *moody, ctx context.Context, do func() (T, error)) (v T, err error) {
	before, after := m.mood(ctx)
	if before {
		return v, errMood
	}
	if v, err = do(); after {
		var none T
		return none, errMood
	}
	return v, err
}

func (m *moody) Append(ctx context.Context, writes []lease.Write) ([]storage.Appended, error) {
	return moodily(m, ctx, func() ([]storage.Appended, error) { return m.Store.Append(ctx, writes) })
}

func (m *moody) Lease(ctx context.Context, manifest string) (lease.Stored, error) {
	return moodily(m, ctx, func() (lease.Stored, error) { return m.Store.Lease(ctx, manifest) })
}

func (m *moody) Leases(ctx context.Context, visit func(string, lease.Stored) bool) (storage.Revision, error) {
	return moodily(m, ctx, func() (storage.Revision, error) { return m.Store.Leases(ctx, visit) })
}

func (m *moody) Renew(ctx context.Context, id lease.SessionID, leaving bool) error {
	_, err := moodily(m, ctx, func() (struct{}, error) { return struct{}{}, m.Store.Renew(ctx, id, leaving) })
	return err
}

// TestF095_UnreliableStore: while the store is away now and then, nothing is accepted of two holders; when it is back, all is tended, evenly.
func TestF095_UnreliableStore(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k, 12)
		m := &moody{Store: w.store, k: k}
		w.through = m
		a, b := w.start("a"), w.start("b")
		latest := map[string]uint64{}
		for range 60 {
			k.Advance(time.Second)
			for _, p := range []*process{a, b} {
				for _, name := range sorted(p.running) {
					f := p.running[name]
					if p.write(f) != nil {
						continue
					}
					if f.Epoch < latest[name] {
						k.Fatalf("%s: epoch %d was accepted after %d", name, f.Epoch, latest[name])
					}
					latest[name] = f.Epoch
					if k.Rand().IntN(3) == 0 {
						p.finish(name)
						p.work(name)
					}
				}
			}
		}
		m.calm = true
		k.Advance(20 * time.Second)
		w.idle()
		k.Advance(time.Minute)
		w.want(6, 6)
	}, harness.Seeds(60))
}
