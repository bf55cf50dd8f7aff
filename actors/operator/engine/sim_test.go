package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// manifests are the keys of a simulation.
func manifests(n int) (keys []Key) {
	for i := range n {
		keys = append(keys, Key{Namespace: "ns", Name: fmt.Sprint("m", i)})
	}
	return keys
}

// works is a pass that takes a while, honours its context, and fails, conflicts or asks for more now and then.
func (w *world) works(k *harness.Kit) func(context.Context, Pass) Result {
	return func(ctx context.Context, _ Pass) Result {
		if w.clock.Sleep(ctx, time.Duration(k.Rand().IntN(300))*time.Millisecond) != nil {
			return Result{Outcome: Failed, Err: context.Cause(ctx)}
		}
		switch k.Rand().IntN(12) {
		case 0:
			return Result{Outcome: Failed, Err: errDown}
		case 1:
			return Result{Outcome: Conflicted}
		case 2:
			return Result{After: time.Duration(k.Rand().IntN(3000)) * time.Millisecond}
		}
		return Result{}
	}
}

// TestNoWakeIsLost changes, makes and removes manifests at random for a while, under a limit or none, and lets nothing but wakes bring
// passes about: neither resync nor fallback. In the end every change has been seen, and nothing is left of actors, messages or timers.
func TestNoWakeIsLost(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		limit := k.Rand().IntN(4)
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: limit})
		w.do(w.works(k))
		keys := manifests(6)
		inTree(k, e)
		for range 60 {
			key := keys[k.Rand().IntN(len(keys))]
			switch k.Rand().IntN(8) {
			case 0:
				w.del(key)
			case 1:
				w.loseWakes()
			case 2:
				e.Wake(key)
			default:
				w.put(key)
			}
			k.Advance(time.Duration(k.Rand().IntN(800)*k.Rand().IntN(4)) * time.Millisecond)
		}
		w.do(nil)
		k.Advance(2 * time.Minute)
		w.settled(k, e)
		if limit > 0 && w.most > limit {
			k.Errorf("%d passes at a time, the limit is %d", w.most, limit)
		}
	}, harness.Seeds(200))
}

// TestNoWakeIsLostOverFaults is the same while passes panic and dispatcher, pool and group are restarted.
func TestNoWakeIsLostOverFaults(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		k.Allow("root/test/manifests/*", supervision.Panic)
		k.AllowDeadLetters()
		w := newWorld(k.Clock())
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: k.Rand().IntN(3)})
		works := w.works(k)
		w.do(func(ctx context.Context, p Pass) Result {
			r := works(ctx, p)
			if k.Rand().IntN(15) == 0 {
				panic("for the test")
			}
			return r
		})
		keys := manifests(5)
		inTree(k, e)
		for range 40 {
			w.change(keys[k.Rand().IntN(len(keys))], k.Rand().IntN(6) > 0, true)
			switch k.Rand().IntN(20) {
			case 0:
				_ = k.System().Restart("root/test/dispatcher")
			case 1:
				_ = k.System().Restart("root/test/manifests")
			case 2:
				_ = k.System().Restart("root/test")
			}
			k.Advance(time.Duration(k.Rand().IntN(1000)*k.Rand().IntN(3)) * time.Millisecond)
		}
		w.do(nil)
		k.Advance(3 * time.Hour) // what had a fault keeps its actor for an hour
		w.settled(k, e)
	}, harness.Seeds(200))
}

// TestALeaseIsRespected gives and takes the leases of manifests at random. No pass begins without, each that began ends, and whoever has the
// lease in the end has seen everything.
func TestALeaseIsRespected(t *testing.T) {
	harness.Sim(t, func(k *harness.Kit) {
		w := newWorld(k.Clock())
		w.held = map[Key]bool{}
		e := New("test", w, w.hooks(), quiet(), Limits{Concurrency: k.Rand().IntN(3)})
		w.do(w.works(k))
		keys := manifests(5)
		inTree(k, e)
		for range 60 {
			key := keys[k.Rand().IntN(len(keys))]
			switch k.Rand().IntN(6) {
			case 0:
				w.hold(e, key, false)
			case 1, 2:
				w.hold(e, key, true)
			case 3:
				w.del(key)
			default:
				w.put(key)
			}
			k.Advance(time.Duration(k.Rand().IntN(600)*k.Rand().IntN(3)) * time.Millisecond)
		}
		w.do(nil)
		k.Advance(2 * time.Minute)
		w.settled(k, e)
	}, harness.Seeds(200))
}
