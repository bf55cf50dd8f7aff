package operator

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// Key names one manifest of a controller.
type Key struct{ Namespace, Name string }

// keySeparator joins the parts of a Key to an actor's name; it cannot occur in either part.
const keySeparator = ":"

// String is the key as a path segment.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + keySeparator + k.Name
}

// ParseKey reads what String wrote.
func ParseKey(s string) Key {
	namespace, name, ok := strings.Cut(s, keySeparator)
	if !ok {
		return Key{Name: s}
	}
	return Key{Namespace: namespace, Name: name}
}

// Action is what a successful pass asks for next. The zero value asks for nothing: the next change or the fallback wakes it.
type Action struct {
	// After runs another pass after this time, if no change does so earlier. Zero for none.
	After time.Duration
	// Done ends the manifest's actor until a change names its key again, for controllers whose keys are no manifests of a kind.
	Done bool
}

// None asks for nothing.
func None() Action { return Action{} }

// Requeue asks for another pass after d.
func Requeue(d time.Duration) Action { return Action{After: d} }

// Done ends the actor of a key that needs no more attention.
func Done() Action { return Action{Done: true} }

// Reconciler brings one manifest closer to what it declares. It is shared by all manifests of its controller.
type Reconciler interface {
	// Reconcile runs one pass. The context ends at the pass's deadline. An error is counted, logged and retried; a conflict or a
	// vanished object is retried without counting as a failure.
	Reconcile(ctx context.Context, key Key) (Action, error)
}

// ReconcilerFunc is a Reconciler of one function.
type ReconcilerFunc func(ctx context.Context, key Key) (Action, error)

// Reconcile implements Reconciler.
func (f ReconcilerFunc) Reconcile(ctx context.Context, key Key) (Action, error) { return f(ctx, key) }

// Read declares one kind a reconciler reads and which manifests a change of it concerns.
type Read struct {
	// Kind is what is read; the zero Kind stands for every resource there is, custom ones included.
	Kind cache.Kind
	// Keys maps a change to the manifests it concerns. It must be quick and must not block. Nil when changes wake nobody.
	Keys func(*cache.Cache, cache.Change) []Key
}

// Controller is everything the operator must know of a controller.
type Controller struct {
	// Name is the path segment and the metrics label.
	Name string
	// Manifests is the kind whose objects are the manifests. The zero Kind: keys come from Reads and Initial alone.
	Manifests cache.Kind
	// Initial lists further keys to look at when the dispatcher starts; nil for none.
	Initial func(*cache.Cache) []Key
	// Reads are the declared reads, the manifests' own kind included.
	Reads []Read
	// New makes the Reconciler that runs the passes. It is called once and given what it may read: the declared kinds.
	New func(reader *cache.Cache) Reconciler
}

// Clock is the time source of the operator.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Deps is what every controller's subtree needs.
type Deps struct {
	Cache *cache.Cache
	Clock Clock
	Log   *slog.Logger
	// Metrics counts passes; nil counts nothing.
	Metrics *Metrics
}

// declared gives the handle through which a controller reads: it tells of kinds that are read without being declared.
func (c Controller) declared(reader *cache.Cache) *cache.Cache {
	kinds := make([]cache.Kind, len(c.Reads))
	for i, read := range c.Reads {
		kinds[i] = read.Kind
	}
	return reader.Declare(kinds...)
}

// live tells whether a key's manifest exists. Controllers without a kind of manifests say so by Action.Done.
func (c Controller) live(reader *cache.Cache, key Key) bool {
	return c.Manifests == (cache.Kind{}) || reader.Has(c.Manifests, key.Namespace, key.Name)
}

// keys lists the manifests that exist now.
func (c Controller) keys(reader *cache.Cache) []Key {
	var keys []Key
	if c.Manifests != (cache.Kind{}) {
		for _, name := range reader.Names(c.Manifests) {
			keys = append(keys, Key{name.Namespace, name.Name})
		}
	}
	if c.Initial != nil {
		keys = append(keys, c.Initial(reader)...)
	}
	return keys
}

// wakes lists the manifests that changes concern, each once, with the newest revision that concerns it.
func (c Controller) wakes(reader *cache.Cache, changes []cache.Change) map[Key]int64 {
	wakes := make(map[Key]int64)
	for _, change := range changes {
		for _, read := range c.Reads {
			if read.Keys == nil || !read.Kind.Holds(change.Key) {
				continue
			}
			for _, key := range read.Keys(reader, change) {
				wakes[key] = max(wakes[key], change.Revision)
			}
		}
	}
	return wakes
}
