package kube

import (
	"context"
	"log/slog"
	"time"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/engine"
)

// Key names one manifest of a controller.
type Key = engine.Key

// ParseKey reads what Key.String wrote.
func ParseKey(s string) Key { return engine.ParseKey(s) }

// Action is what a successful pass asks for next. The zero value asks for nothing: the next change or the fallback wakes it.
type Action struct {
	// After runs another pass after this time, if no change does so earlier. Zero for none. Beside an error it is the wait until the next
	// try, zero for that of the back-off.
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
	// About finds the object that a key stands for, on which faults and pauses of its reconciler are told; nil when there is none. By
	// default it is the manifest. Named serves controllers whose keys are objects of one kind.
	About func(reader *cache.Cache, key Key) *cache.Meta
	// Initial lists further keys to look at when the dispatcher starts; nil for none.
	Initial func(*cache.Cache) []Key
	// Reads are the declared reads, the manifests' own kind included.
	Reads []Read
	// Define makes the kind of the manifests known to the API, before the controller waits for it to be served; nil when it is known anyway. It
	// is called until it succeeds. ErrDefinitionTaken is waited out: nothing is tried until some definition changes.
	Define func(ctx context.Context) error
	// Conditioned tells that custom resources of the manifests' kind have conditions in their status, a list with one of each type, and a
	// phase that may be Parked.
	Conditioned bool
	// Timings and Limits are those of the engine; nil and zero stand for Timings() and none.
	Timings *engine.Timings
	Limits  engine.Limits
	// Recall tells with which past the actor of a manifest begins, as engine.Hooks.Recall; nil for none.
	Recall func(reader *cache.Cache, key Key) (failures int, next time.Time)
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
	// Breaker pauses reconcilers that write in circles; nil pauses none. Their client must go through its Guard.
	Breaker *Breaker
	// Reporter tells on objects how their reconcilers do; nil tells nothing.
	Reporter *Reporter
	// InjectFaults lets an object ask for a fault of its reconcilers, by the annotation InjectAnnotation. For drills only.
	InjectFaults bool
}

// Named is the About of controllers whose keys are the names of objects of one kind.
func Named(kind cache.Kind) func(*cache.Cache, Key) *cache.Meta {
	return func(reader *cache.Cache, key Key) *cache.Meta {
		return reader.MetaByKey(kind.Key(key.Namespace, key.Name))
	}
}

// about is About with its default.
func (c *Controller) about(reader *cache.Cache, key Key) *cache.Meta {
	switch {
	case c.About != nil:
		return c.About(reader, key)
	case c.Manifests != (cache.Kind{}):
		return Named(c.Manifests)(reader, key)
	}
	return nil
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

// kinds lists what changes are followed of; none stands for everything.
func (c Controller) kinds() (kinds []cache.Kind) {
	for _, read := range c.Reads {
		if read.Kind == (cache.Kind{}) {
			return nil
		}
		if read.Keys != nil {
			kinds = append(kinds, read.Kind)
		}
	}
	return kinds
}

// keys lists the manifests that exist now.
func (c Controller) keys(reader *cache.Cache) []Key {
	var keys []Key
	if c.Manifests != (cache.Kind{}) {
		keys = Every(reader, c.Manifests)
	}
	if c.Initial != nil {
		keys = append(keys, c.Initial(reader)...)
	}
	return keys
}

// woken is what changes mean to one manifest.
type woken struct {
	key Key
	// revision is the newest that concerns it.
	revision int64
	// own is the change of the manifest itself, from the first of several to the last; nil when only other objects changed.
	own *cache.Change
}

// wakes lists the manifests that changes concern, each once and in the order of the changes.
func (c Controller) wakes(reader *cache.Cache, changes []cache.Change, each func(Key, cache.Change)) (wakes []woken) {
	at := make(map[Key]int)
	for i, change := range changes {
		for _, read := range c.Reads {
			if read.Keys == nil || !read.Kind.Holds(change.Key) {
				continue
			}
			for _, key := range read.Keys(reader, change) {
				n, known := at[key]
				if !known {
					n, at[key] = len(wakes), len(wakes)
					wakes = append(wakes, woken{key: key})
				}
				w := &wakes[n]
				w.revision = max(w.revision, change.Revision)
				if c.isAbout(reader, key, change) {
					w.own = merged(w.own, &changes[i])
				}
				each(key, change)
			}
		}
	}
	return wakes
}

// isAbout tells whether a change is one of the object that a key stands for.
func (c *Controller) isAbout(reader *cache.Cache, key Key, change cache.Change) bool {
	if meta := change.Meta(); meta.Name != key.Name && string(meta.UID) != key.Name {
		return false
	}
	about := c.about(reader, key)
	if about == nil {
		return change.Deleted()
	}
	return about.Key == change.Key
}

func merged(first, last *cache.Change) *cache.Change {
	if first == nil {
		return last
	}
	both := *last
	both.Old, both.OldMeta = first.Old, first.OldMeta
	return &both
}
