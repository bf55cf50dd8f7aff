package adapter_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/nodeactor/nodeactor/store/adapter"
)

// handClock is a clock that stands still until it is moved.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	alarms []*alarm
}

type alarm struct {
	at time.Time
	f  func()
}

// Now implements supervision.Clock.
func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements supervision.Clock.
func (c *handClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{c.now.Add(d), f}
	c.alarms = append(c.alarms, a)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		a.f = nil
		return true
	}
}

// Sleep implements supervision.Clock; nobody here sleeps.
func (c *handClock) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

// move lets time pass and calls what is due.
func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for _, a := range c.alarms {
		if a.f != nil && !a.at.After(c.now) {
			due = append(due, a.f)
			a.f = nil
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// TestBookmarksComeEveryMinuteAndBeforeTheEnd: a watcher for whom nothing happens learns every minute how far the store has come, if that is
// further than it knows, and once more before its watch ends in any case.
func TestBookmarksComeEveryMinuteAndBeforeTheEnd(t *testing.T) {
	ctx, f := setup(t)
	clock := &handClock{now: time.Now()}
	backend := f.whole.Backend()
	backend.Clock = clock
	s, err := adapter.New(backend, adapter.Config{
		Prefix: "/registry", ResourcePrefix: "/pods", GroupResource: schema.GroupResource{Resource: "pods"}, Codec: testCodec(),
		NewFunc: func() runtime.Object { return &example.Pod{} }, NewListFunc: func() runtime.Object { return &example.PodList{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithDeadline(ctx, clock.Now().Add(10*time.Minute))
	defer cancel()
	predicate := storage.Everything
	predicate.AllowWatchBookmarks = true
	w, err := s.Watch(limited, "/pods", storage.ListOptions{Recursive: true, Predicate: predicate, ResourceVersion: strconv.FormatInt(f.whole.Revision(), 10)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	time.Sleep(100 * time.Millisecond) // the watcher sets its alarms when it runs
	clock.move(61 * time.Second)
	none(t, w, "nothing has happened")
	rev := f.increaseRV(ctx, t)
	clock.move(30 * time.Second)
	none(t, w, "half a minute later")
	clock.move(31 * time.Second)
	bookmark(t, w, rev)
	clock.move(7*time.Minute + 50*time.Second)
	none(t, w, "long before the end")
	clock.move(7 * time.Second)
	bookmark(t, w, rev)
}

func none(t *testing.T, w watch.Interface, when string) {
	t.Helper()
	select {
	case ev := <-w.ResultChan():
		t.Fatalf("%s: got %v %v", when, ev.Type, ev.Object)
	case <-time.After(100 * time.Millisecond):
	}
}

func bookmark(t *testing.T, w watch.Interface, rev int64) {
	t.Helper()
	select {
	case ev := <-w.ResultChan():
		if pod, ok := ev.Object.(*example.Pod); ev.Type != watch.Bookmark || !ok || pod.ResourceVersion != strconv.FormatInt(rev, 10) {
			t.Fatalf("got %v %v, want a bookmark of %d", ev.Type, ev.Object, rev)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no bookmark of %d", rev)
	}
}
