package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/hotloop"
)

// deletionsKept is how many recent deletions are remembered with who asked for them.
const deletionsKept = 1024

// Breaker watches what the reconcilers of this process write and pauses one that writes in circles; hotloop says when. It is shared by
// all controllers. A nil Breaker watches nothing.
type Breaker struct {
	cache *cache.Cache
	clock Clock
	// tripped is told of each trip, without any lock held.
	tripped func(hotloop.Trip)

	mu       sync.Mutex
	detector *hotloop.Detector
	// busy tells of each controller in which seconds it changed something.
	busy map[string]*hotloop.Busy
	// deleters are those who first asked for a deletion; recent holds their keys in order, next is the place of the next.
	deleters map[hotloop.Object]hotloop.Writer
	recent   [deletionsKept]hotloop.Object
	next     int
}

// NewBreaker makes a breaker. What objects contain is read from the cache, the newest stored version.
func NewBreaker(reader *cache.Cache, clock Clock) *Breaker {
	return &Breaker{
		cache: reader, clock: clock, tripped: func(hotloop.Trip) {},
		detector: hotloop.New(), deleters: map[hotloop.Object]hotloop.Writer{}, busy: map[string]*hotloop.Busy{},
	}
}

// Guard puts the breaker between reconcilers and the API. It concerns only requests whose context is that of a pass.
func (b *Breaker) Guard(next http.RoundTripper) http.RoundTripper {
	if b == nil {
		return next
	}
	return &guarded{breaker: b, next: next}
}

// Coming tells that somebody else, a user through a field manager, asks the API for a write, and Seen that it was answered. Both are
// cheap for objects that no reconciler writes.
func (b *Breaker) Coming(user, manager string, object hotloop.Object) {
	if object.Name == "" {
		return
	}
	now := b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.detector.IsWatched(now, object) {
		b.detector.Announce(outsider(user, manager), object)
	}
}

// Seen is the end of a write that Coming announced.
func (b *Breaker) Seen(user, manager, method string, object hotloop.Object) {
	if object.Name == "" {
		return
	}
	now := b.clock.Now()
	b.mu.Lock()
	watched := b.detector.IsWatched(now, object)
	if method == http.MethodDelete {
		b.noteDeletion(outsider(user, manager), object)
	}
	b.mu.Unlock()
	if watched {
		b.step(hotloop.Event{Kind: hotloop.Wrote, Writer: outsider(user, manager), Object: object, Content: b.content(object)})
	}
}

// outsider is a writer that is no reconciler.
func outsider(user, manager string) hotloop.Writer {
	return hotloop.Writer{Name: user + " with " + manager}
}

// admit holds back a writer that pauses, and one whose next creation would be one too many.
func (b *Breaker) admit(w hotloop.Writer, method string, object hotloop.Object) error {
	now := b.clock.Now()
	b.mu.Lock()
	_, pauses := b.detector.Paused(now, w)
	var trip hotloop.Trip
	tripped := false
	switch {
	case pauses:
	case object.Name != "":
		b.detector.Announce(w, object)
	case method == http.MethodPost:
		trip, tripped = b.detector.Step(now, hotloop.Event{Kind: hotloop.Creating, Writer: w, Object: object})
	}
	b.mu.Unlock()
	if tripped {
		b.tripped(trip)
	}
	if pauses || tripped {
		return fmt.Errorf("cannot write %s: %w", object, ErrPaused)
	}
	return nil
}

// answered takes the API's answer to a write of ours; before is the version there was.
func (b *Breaker) answered(w hotloop.Writer, method string, object hotloop.Object, before int64, status int) {
	good := status < http.StatusBadRequest
	same := good && before != 0 && b.version(object) == before
	if good && !same {
		b.noteBusy(w.Name)
	}
	switch {
	case object.Name == "" && method == http.MethodPost && refused(status):
		b.step(hotloop.Event{Kind: hotloop.Refused, Writer: w, Object: object})
	case object.Name != "" && good:
		b.wrote(w, method, object, same)
	}
}

// wrote feeds a write of an object that there is.
func (b *Breaker) wrote(w hotloop.Writer, method string, object hotloop.Object, same bool) {
	event := hotloop.Event{Kind: hotloop.Wrote, Writer: w, Object: object, Same: same}
	b.mu.Lock()
	if method == http.MethodDelete {
		b.noteDeletion(w, object)
	}
	watched := b.detector.IsWatched(b.clock.Now(), object)
	b.mu.Unlock()
	if watched {
		event.Content = b.content(object)
	}
	b.step(event)
}

func (b *Breaker) noteBusy(controller string) {
	now := b.clock.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	busy := b.busy[controller]
	if busy == nil {
		busy = &hotloop.Busy{}
		b.busy[controller] = busy
	}
	busy.Note(now)
}

// turned calls each for the controllers that began or ceased to write in nearly every second.
func (b *Breaker) turned(each func(controller string, continuous bool, seconds int)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	for controller, busy := range b.busy {
		if continuous, news := busy.Turned(now); news {
			each(controller, continuous, busy.Seconds(now))
		}
	}
}

// refused tells a refusal from a race with another writer, and from a server that is not up to it.
func refused(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusConflict && status != http.StatusNotFound && status != http.StatusTooManyRequests
}

// noteDeletion remembers who asked first; the lock is held.
func (b *Breaker) noteDeletion(w hotloop.Writer, object hotloop.Object) {
	if _, known := b.deleters[object]; known {
		return
	}
	delete(b.deleters, b.recent[b.next])
	b.recent[b.next], b.deleters[object] = object, w
	b.next = (b.next + 1) % deletionsKept
}

// step feeds the detector and tells of a trip.
func (b *Breaker) step(e hotloop.Event) (tripped bool) {
	b.mu.Lock()
	trip, tripped := b.detector.Step(b.clock.Now(), e)
	b.mu.Unlock()
	if tripped {
		b.tripped(trip)
	}
	return tripped
}

// paused tells whether a reconciler pauses, and why.
func (b *Breaker) paused(w hotloop.Writer) (hotloop.Trip, bool) {
	if b == nil {
		return hotloop.Trip{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.detector.Paused(b.clock.Now(), w)
}

// forgive ends the pause of a reconciler whose manifest is gone: whoever has its name now is another.
func (b *Breaker) forgive(w hotloop.Writer) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detector.Forgive(b.clock.Now(), w)
}

// release ends the pauses that are over.
func (b *Breaker) release() []hotloop.Trip {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.detector.Release(b.clock.Now())
}

// woken counts a wake of a reconciler by a change, unless the reconciler made that change itself.
func (b *Breaker) woken(w hotloop.Writer, change cache.Change) {
	if b == nil {
		return
	}
	object := objectOf(change.Meta())
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.detector.LastWriter(object) != w {
		b.detector.Step(b.clock.Now(), hotloop.Event{Kind: hotloop.Woken, Writer: w})
	}
}

// ended tells of the end of an object soon after its reconciler made it. by is who ended it, if that is known; a deletion that the
// reconciler asked for itself is none.
func (b *Breaker) ended(w hotloop.Writer, change cache.Change, kind hotloop.EventKind, by string) {
	object := objectOf(change.Meta())
	b.mu.Lock()
	deleter, known := b.deleters[object]
	b.mu.Unlock()
	other := hotloop.Writer{Name: by}
	if kind == hotloop.Deleted && known {
		other = deleter
	}
	if other != w {
		b.step(hotloop.Event{Kind: kind, Writer: w, Other: other, Object: object})
	}
}

// soon tells whether an object ended so early that it counts as rejected.
func (b *Breaker) soon(meta *cache.Meta) bool {
	return b.clock.Now().Unix()-meta.Created <= int64(hotloop.SoonAfter/time.Second)
}

func objectOf(meta *cache.Meta) hotloop.Object {
	resource := meta.Resource()
	return hotloop.Object{Group: resource.Group, Resource: resource.Resource, Namespace: meta.Namespace, Name: meta.Name}
}

func kindOf(o hotloop.Object) cache.Kind {
	return cache.KindServing(schema.GroupResource{Group: o.Group, Resource: o.Resource}, o.Namespace != "")
}

// version is that of the stored object, zero when there is none.
func (b *Breaker) version(o hotloop.Object) int64 {
	if o.Name == "" {
		return 0
	}
	record, _ := b.cache.Record(kindOf(o), o.Namespace, o.Name)
	return record.ModRevision
}

// content is the meaning of the stored object, zero when it cannot be read.
func (b *Breaker) content(o hotloop.Object) uint64 {
	kind := kindOf(o)
	record, ok := b.cache.Record(kind, o.Namespace, o.Name)
	if !ok {
		return 0
	}
	plain, err := plainOf(record)
	if err != nil {
		return 0
	}
	return hotloop.Meaning(plain)
}

// plainOf is an object as maps and slices.
func plainOf(record cache.Record) (map[string]any, error) {
	if cache.IsTyped(record.Key) {
		object, err := record.Object()
		if err != nil {
			return nil, err
		}
		return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	}
	var plain map[string]any
	return plain, json.Unmarshal(record.Value, &plain)
}
