package cache_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
)

// waits is a clock on which time passes at once; at is told of each wait by its number.
type waits struct {
	taken []time.Duration
	at    func(n int)
}

func (w *waits) Sleep(ctx context.Context, d time.Duration) error {
	w.taken = append(w.taken, d)
	w.at(len(w.taken))
	return ctx.Err()
}

// TestF050_AStreamIsOpenedAgainOnItsCurve: from 100 ms, doubling to 30 s, and from 100 ms again after something was delivered.
func TestF050_AStreamIsOpenedAgainOnItsCurve(t *testing.T) {
	const down = 12
	source := cachetest.NewMemory()
	c := cache.New(source, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &waits{}
	clock.at = func(n int) {
		switch n {
		case down:
			source.Up()
			go deliverAndBreak(c, source)
		case down + 1:
			cancel()
		}
	}
	source.Down()
	_ = c.Run(ctx, clock, func() {})
	want := []time.Duration{}
	for _, ms := range []int{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000, 100} {
		want = append(want, time.Duration(ms)*time.Millisecond)
	}
	if fmt.Sprint(clock.taken) != fmt.Sprint(want) {
		t.Errorf("waited %v, want %v", clock.taken, want)
	}
}

// deliverAndBreak has the stream bring something, and cuts it when that has arrived.
func deliverAndBreak(c *cache.Cache, source *cachetest.Memory) {
	for c.Applied() == 0 {
		time.Sleep(time.Millisecond)
	}
	cachetest.Put(source, pod("p", "1", "n"))
	for !c.Has(cache.KindOf[*corev1.Pod](), "ns", "p") || c.MetaByUID("1") == nil {
		time.Sleep(time.Millisecond)
	}
	source.Break()
}
