package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/test/harness"
)

// TestNoWakeIsLostOnTheMachinesClock lets real goroutines edit manifests and move their leases, while actors linger for so short a time that
// they come and go all the time. It is here for the race detector, and for what a scheduler of one step at a time cannot show.
func TestNoWakeIsLostOnTheMachinesClock(t *testing.T) {
	const clients, edits = 4, 3000
	harness.Real(t, func(k *harness.Kit) {
		w := newWorld(supervision.RealClock())
		w.held = map[Key]bool{}
		timings := quiet()
		timings.Linger, timings.Debounce = 2*time.Millisecond, time.Millisecond
		e := New("test", w, w.hooks(), timings, Limits{Concurrency: 8})
		keys := manifests(40)
		for _, key := range keys {
			w.held[key] = true
		}
		inTree(k, e)
		left := make(chan int, clients)
		for i := range clients {
			k.Go(fmt.Sprint("client ", i), func(context.Context) {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range edits {
					w.disturb(e, random, keys[random.IntN(len(keys))])
				}
				left <- i
			})
		}
		for range clients {
			<-left
		}
		k.Await(time.Minute, func() bool {
			s := e.Stats()
			return len(w.unseen()) == 0 && s.Actors+s.Running+s.Waiting == 0
		})
		w.settled(k, e)
	})
}

// disturb does something to one manifest, and rests a little now and then.
func (w *world) disturb(e *Engine, random *rand.Rand, key Key) {
	switch random.IntN(10) {
	case 0:
		w.hold(e, key, false)
	case 1, 2:
		w.hold(e, key, true)
	case 3:
		w.del(key)
	case 4:
		w.change(key, true, false)
		w.loseWakes()
	case 5:
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
	default:
		w.put(key)
	}
}
