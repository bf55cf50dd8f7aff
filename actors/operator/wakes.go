package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
)

// wakes is one subscription of an index: the wakes that nobody has taken yet.
type wakes struct {
	of     *index
	notify func()

	mu      sync.Mutex
	pending map[engine.Key]engine.Wake
}

// Subscribe implements engine.Source.
func (x *index) Subscribe(notify func()) engine.Feed {
	w := &wakes{of: x, notify: notify, pending: map[engine.Key]engine.Wake{}}
	x.mu.Lock()
	x.subs = append(slices.Clip(x.subs), w)
	x.mu.Unlock()
	return w
}

// wake hands wakes to all subscribers, and tells them in any case: they may wait for the index to be ready.
func (x *index) wake(all []engine.Wake) {
	for _, w := range all {
		x.woken(Key(w.Key))
	}
	x.mu.Lock()
	subs := x.subs
	x.mu.Unlock()
	for _, w := range subs {
		w.add(all)
		w.notify()
	}
}

func (w *wakes) add(all []engine.Wake) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wake := range all {
		if before, ok := w.pending[wake.Key]; ok {
			wake.Revision = max(wake.Revision, before.Revision)
			if wake.Mends == nil {
				wake.Mends = before.Mends
			}
		}
		w.pending[wake.Key] = wake
	}
}

// Take implements engine.Feed.
func (w *wakes) Take() ([]engine.Wake, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]engine.Wake, 0, len(w.pending))
	for _, wake := range w.pending {
		all = append(all, wake)
	}
	w.pending = map[engine.Key]engine.Wake{} // a map does not give back the room of the first listing
	slices.SortFunc(all, func(a, b engine.Wake) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return all, nil
}

// Close implements engine.Feed.
func (w *wakes) Close() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.subs = slices.DeleteFunc(slices.Clone(w.of.subs), func(o *wakes) bool { return o == w })
}

// Sync implements engine.Source. Passes read the store itself, so they see everything; the index only knows up to which revision they do.
func (x *index) Sync(ctx context.Context) (uint64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen, ctx.Err()
}

// mark is a hash of all that passes have to see of a manifest. The status is not among it: its changes are the passes' own. Finalizers
// count while the manifest waits for those of others to go.
func (r Record) mark() uint64 {
	meta := r.Metadata
	if meta.Finalizers = nil; r.Deleting() {
		meta.Finalizers = without(r.Finalizers, []string{finalizerName})
	}
	text, _ := json.Marshal(meta) // it holds nothing that JSON does not
	h := fnv.New64a()
	h.Write(text)
	h.Write([]byte(r.Hash))
	return h.Sum64()
}
