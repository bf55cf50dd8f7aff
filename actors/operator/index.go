package operator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/engine"
	"github.com/nodeactor/nodeactor/actors/operator/storage"
)

// index is what a process keeps in memory of all manifests of a kind: that they exist, and when they changed in a way that matters. It is the
// engine's source. It outlives generations of the actors.
type index struct {
	kind  string
	reads map[string]Read
	// woken is told of wakes from outside the manifest's own passes, gone of manifests that are no more.
	woken, gone func(Key)
	// misread is told of objects of which it cannot be said whom they concern.
	misread func(storage.ID, error)

	mu      sync.Mutex
	entries map[Key]entry
	// failing are the pasts of manifests whose last pass did not end well.
	failing map[Key]past
	// concerned are the manifests that each read object concerned when it was seen last.
	concerned map[storage.ID][]Key
	subs      []*wakes
	// ready is set when all has been listed once; seen is the newest revision.
	ready bool
	seen  storage.Revision
}

// entry is what is kept of a manifest.
type entry struct {
	// revision is that of the last change that matters, mark tells whether one does: it leaves out the status.
	revision storage.Revision
	mark     uint64
	// epoch is that of the last pass that this process began.
	epoch uint64
}

// past is what is kept of a manifest that failed.
type past struct {
	attempts int
	// next is the stored time of the next try, parked that it is no back-off; it does not count for another specification.
	next   time.Time
	parked bool
	other  bool
}

func newIndex(kind string, reads []Read, woken, gone func(Key), misread func(storage.ID, error)) *index {
	x := &index{
		kind: kind, reads: map[string]Read{}, woken: woken, gone: gone, misread: misread,
		entries: map[Key]entry{}, failing: map[Key]past{}, concerned: map[storage.ID][]Key{},
	}
	for _, r := range reads {
		if r.Wakes() {
			x.reads[r.kind] = r
		}
	}
	return x
}

// kinds are those whose changes the index has to see.
func (x *index) kinds() []string {
	kinds := append(slices.Collect(maps.Keys(x.reads)), x.kind)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// apply takes changes in order and wakes whom they concern. A record that cannot be read is left out: its passes fail of it.
func (x *index) apply(changes []storage.Change) {
	var all []engine.Wake
	x.mu.Lock()
	for i := range changes {
		c := &changes[i]
		all = append(all, x.change(c.Object, c.Deleted)...)
		x.seen = max(x.seen, c.Revision)
	}
	x.mu.Unlock()
	x.wake(all)
}

// replace takes a whole listing: what is not in it is gone.
func (x *index) replace(objects []storage.Object, revision storage.Revision) {
	var all []engine.Wake
	x.mu.Lock()
	there := make(map[storage.ID]bool, len(objects))
	for i := range objects {
		there[objects[i].ID] = true
		all = append(all, x.change(objects[i], false)...)
	}
	for _, id := range x.missing(there) {
		all = append(all, x.change(storage.Object{ID: id, Revision: revision}, true)...)
	}
	x.ready, x.seen = true, max(x.seen, revision)
	x.mu.Unlock()
	x.wake(all)
}

// missing are the objects that are known and not there any more, in order.
func (x *index) missing(there map[storage.ID]bool) (gone []storage.ID) {
	for key := range x.entries {
		if id := (storage.ID{Kind: x.kind, Namespace: key.Namespace, Name: key.Name}); !there[id] {
			gone = append(gone, id)
		}
	}
	for id := range x.concerned {
		if !there[id] && id.Kind != x.kind {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, func(a, b storage.ID) int { return cmp.Compare(a.Key(), b.Key()) })
	return gone
}

// change takes the new state of an object and says whom it wakes.
func (x *index) change(obj storage.Object, deleted bool) (woken []engine.Wake) {
	rec, err := DecodeRecord(obj.Value)
	if err != nil {
		rec = Record{Metadata: Metadata{Namespace: obj.Namespace, Name: obj.Name}}
	}
	if obj.Kind == x.kind {
		woken = x.own(rec, obj.Revision, deleted)
	}
	if read, ok := x.reads[obj.Kind]; ok {
		woken = append(woken, x.read(read, obj, rec, deleted)...)
	}
	return woken
}

// own takes the new state of a manifest of the index's own kind.
func (x *index) own(rec Record, revision storage.Revision, deleted bool) []engine.Wake {
	key := rec.Key()
	before, known := x.entries[key]
	switch {
	case deleted && !known:
		return nil
	case deleted:
		x.forget(key)
	case known && revision < before.revision:
		return nil
	default:
		mark := rec.mark()
		x.remember(rec)
		if known && before.mark == mark {
			return nil
		}
		x.entries[key] = entry{revision, mark, before.epoch}
	}
	return []engine.Wake{{Key: engine.Key(key), Revision: revision, Mends: mends}}
}

// mends says of every change of a manifest itself that it may have removed what its passes fail of.
func mends() bool { return true }

// forget drops a manifest.
func (x *index) forget(key Key) {
	delete(x.entries, key)
	delete(x.failing, key)
	x.gone(key)
}

// remember keeps the past of a manifest that failed.
func (x *index) remember(rec Record) {
	s := rec.Status
	if s.Attempts == 0 && s.NextTry.IsZero() {
		delete(x.failing, rec.Key())
		return
	}
	x.failing[rec.Key()] = past{attempts: s.Attempts, next: s.NextTry, parked: s.Phase == PhaseParked, other: s.ObservedHash != rec.Hash}
}

// read takes the new state of an object that manifests read. Those are woken that it concerned before and those that it concerns now.
func (x *index) read(read Read, obj storage.Object, rec Record, deleted bool) (woken []engine.Wake) {
	concerned := x.concerned[obj.ID]
	if deleted {
		delete(x.concerned, obj.ID)
	} else if now, err := read.Concerns(rec); err != nil {
		x.misread(obj.ID, err)
	} else {
		concerned = append(slices.Clip(concerned), now...)
		x.concerned[obj.ID] = now
	}
	seen := make(map[Key]bool, len(concerned))
	for _, key := range concerned {
		if _, there := x.entries[key]; there && !seen[key] {
			seen[key] = true
			woken = append(woken, engine.Wake{Key: engine.Key(key), Revision: obj.Revision})
		}
	}
	return woken
}

// wrote takes note of what a pass has written itself, so that it wakes nobody.
func (x *index) wrote(rec Record, revision storage.Revision, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, known := x.entries[rec.Key()]
	switch {
	case !known || revision < before.revision:
	case gone:
		x.forget(rec.Key())
	default:
		x.remember(rec)
		x.entries[rec.Key()] = entry{before.revision, rec.mark(), before.epoch}
	}
}

// begun notes that a pass has begun under an epoch.
func (x *index) begun(key Key, epoch uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.entries[key]; ok {
		e.epoch = epoch
		x.entries[key] = e
	}
}

// lastBegun is the epoch of the last pass that this process began, 0 for none.
func (x *index) lastBegun(key Key) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[key].epoch
}

// Ready implements engine.Awaiting.
func (x *index) Ready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ready
}

// Has implements engine.Source.
func (x *index) Has(key engine.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.entries[Key(key)]
	return ok
}

// Keys implements engine.Source.
func (x *index) Keys(visit func(engine.Key, uint64) bool) {
	x.mu.Lock()
	keys := sortedKeys(x.entries)
	x.mu.Unlock()
	for _, key := range keys {
		x.mu.Lock()
		e, ok := x.entries[key]
		x.mu.Unlock()
		if ok && !visit(engine.Key(key), e.revision) {
			return
		}
	}
}

// recall is the past of a manifest.
func (x *index) recall(key Key) (past, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.failing[key]
	return p, ok
}

// sortedKeys are the keys of a map in order, so that nothing depends on the map's.
func sortedKeys[V any](m map[Key]V) []Key {
	return slices.SortedFunc(maps.Keys(m), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}
