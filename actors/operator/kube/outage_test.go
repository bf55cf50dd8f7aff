package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// asking counts how often a source is asked for its revision, which every pass begins with.
type asking struct {
	cache.Source
	asked atomic.Int64
}

// Revision implements cache.Source.
func (a *asking) Revision() int64 {
	a.asked.Add(1)
	return a.Source.Revision()
}

// TestP59_WhileTheStoreIsDownAControllerTriesOnceASecond has five hundred manifests and no store for ten minutes; then they come back,
// but not all in one moment.
func TestP59_WhileTheStoreIsDownAControllerTriesOnceASecond(t *testing.T) {
	inWard(t, func(w *ward) {
		const manifests = 500
		for i := range manifests {
			w.put(fmt.Sprint("m", i), 1)
		}
		counting := &asking{Source: w.source}
		w.startOver(counting)
		w.passes("", time.Minute)
		w.source.Down()
		w.passes("", time.Minute) // everybody's fallback has found out
		before := counting.asked.Load()
		w.passes("", 10*time.Minute)
		if n := counting.asked.Load() - before; n > 10*60 || n < 60 {
			t.Errorf("the store was asked %d times in ten minutes", n)
		}
		for i := range manifests {
			if c := w.condition(fmt.Sprint("m", i), ConditionHealthy); c != "" {
				t.Fatalf("the outage is told on an object: %s", c)
			}
		}
		back := time.Now()
		w.source.Up()
		w.passes("", time.Minute)
		w.wantSpread(back, manifests)
	})
}

// TestP59_WhileTheAPIAnswersNobodyAControllerTriesOnceASecond is the same for the API: each pass reaches its reconciler and fails there.
func TestP59_WhileTheAPIAnswersNobodyAControllerTriesOnceASecond(t *testing.T) {
	inWard(t, func(w *ward) {
		for i := range 200 {
			w.put(fmt.Sprint("m", i), 1)
		}
		w.start()
		w.passes("", time.Minute)
		w.do(func(context.Context, Key) error {
			return &url.Error{Op: "Put", URL: "https://in-process", Err: errors.New("not running at the moment")}
		})
		w.passes("", time.Minute)
		before := len(w.since(time.Time{}))
		w.passes("", 10*time.Minute)
		if n := len(w.since(time.Time{})) - before; n > 10*60 || n < 60 {
			t.Errorf("%d passes in ten minutes", n)
		}
		back := time.Now()
		w.do(nil)
		w.passes("", time.Minute)
		w.wantSpread(back, 200)
	})
}

// since lists the times of all passes after a time.
func (w *ward) since(t time.Time) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []time.Time
	for _, times := range w.reconciled {
		for _, at := range times {
			if at.After(t) {
				all = append(all, at)
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// wantSpread wants a pass of each manifest within five seconds, and never a fifth of them within a tenth of a second.
func (w *ward) wantSpread(back time.Time, manifests int) {
	w.Helper()
	w.mu.Lock()
	for name, times := range w.reconciled {
		if !slices.ContainsFunc(times, func(at time.Time) bool { return at.After(back) && at.Sub(back) <= 5*time.Second }) {
			w.Errorf("%s was not reconciled within five seconds", name)
		}
	}
	w.mu.Unlock()
	all := w.since(back)
	for i := range all {
		if i >= manifests/5 && all[i].Sub(all[i-manifests/5]) < 100*time.Millisecond {
			w.Fatalf("%d passes within %v, %v after the return", manifests/5, all[i].Sub(all[i-manifests/5]), all[i].Sub(back))
		}
	}
}
