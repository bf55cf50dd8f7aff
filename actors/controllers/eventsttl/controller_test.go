package eventsttl

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
)

var now = time.Unix(1700000000, 0)

func TestExpired(t *testing.T) {
	source := cachetest.NewMemory()
	r := &retainer{cache: cache.New(source, slog.New(slog.DiscardHandler))}
	var metas []*cache.Meta
	add := func(name string, created, counted time.Duration) {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		event.LastTimestamp = metav1.NewTime(now.Add(-counted))
		cachetest.Put(source, event)
		metas = append(metas, &cache.Meta{Namespace: "ns", Name: name, Created: now.Add(-created).Unix()})
	}
	add("old", 3*time.Hour, 2*time.Hour)
	add("counted", 2*time.Hour, time.Minute)
	add("just old", 61*time.Minute, 61*time.Minute)
	add("young", time.Minute, time.Minute)
	expired := r.expired(metas, now)
	if len(expired) != 2 || expired[0].Name != "old" || expired[1].Name != "just old" {
		t.Errorf("expired %v", expired)
	}
}

func TestTheOldestBeyondTheLimitGo(t *testing.T) {
	r := &retainer{cache: cache.New(cachetest.NewMemory(), slog.New(slog.DiscardHandler))}
	var metas []*cache.Meta
	for i := range most + 5 {
		metas = append(metas, &cache.Meta{Name: fmt.Sprint(i), Created: now.Unix()})
	}
	if expired := r.expired(metas, now); len(expired) != 5 || expired[4].Name != "4" {
		t.Errorf("%d expired", len(expired))
	}
}
