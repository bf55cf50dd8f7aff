package index

import (
	"bytes"
	"context"
	"sort"
	"sync"

	"github.com/nodeactor/nodeactor/store/engine"
)

// Index is the store's memory. Load and Apply are called by one goroutine; everything else by anyone.
type Index struct {
	history History
	limit   int // of events in a ring

	mu        sync.RWMutex
	resources map[string]*resource
	rev       int64
	loaded    int64 // revision of the state the index began with
	compacted int64 // revision before which subscriptions can no longer begin
	subs      map[*Subscription]struct{}
	waiters   []waiter
	closed    error

	parkMu sync.Mutex
	parked map[string][]*Parked
}

// History reads events from the engine that the rings no longer hold; see engine.Engine.
type History interface {
	History(ctx context.Context, from, to string, after, upto int64, limit int) ([]engine.Change, int64, error)
}

// waiter wants to know when a revision has been applied.
type waiter struct {
	rev int64
	ch  chan struct{}
}

// New returns an empty index.
func New(h History) *Index {
	return &Index{history: h, limit: ringEvents, resources: map[string]*resource{}, subs: map[*Subscription]struct{}{}, parked: map[string][]*Parked{}}
}

// Load fills the empty index with the state at revision.
func (x *Index) Load(kvs []engine.KV, revision int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rev, x.loaded = revision, revision
	for _, kv := range kvs {
		item := NewItem(kv)
		r := x.resource(DirOf(kv.Key))
		r.tree.Set(item)
		r.bytes += int64(len(item.Value))
	}
}

func (x *Index) resource(dir string) *resource {
	r := x.resources[dir]
	if r == nil {
		r = newResource(dir, x.loaded, x.limit)
		x.resources[dir] = r
		for s := range x.subs {
			s.attachNew(r)
		}
	}
	return r
}

// Apply makes a batch of changes visible at once, in revision order, and wakes whom it concerns.
func (x *Index) Apply(b engine.Batch) {
	x.mu.Lock()
	touched := map[*resource]struct{}{}
	for _, c := range b.Changes {
		if c.KV.ModRevision <= x.rev {
			continue
		}
		if dir := DirOf(c.KV.Key); dir != "" {
			touched[x.applyOne(x.resource(dir), c)] = struct{}{}
		}
	}
	x.rev = max(x.rev, b.Revision)
	if n := len(b.Changes); n > 0 {
		x.rev = max(x.rev, b.Changes[n-1].KV.ModRevision)
	}
	x.release(func(w waiter) bool { return w.rev <= x.rev })
	for r := range touched {
		for _, s := range r.subs {
			s.wake()
		}
	}
	x.mu.Unlock()
}

func (x *Index) applyOne(r *resource, c engine.Change) *resource {
	ev := Event{Type: Added, Revision: c.KV.ModRevision, forms: &Forms{}}
	if c.Delete {
		prev, ok := r.tree.Delete(&Item{Key: c.KV.Key})
		if !ok {
			return r
		}
		ev.Type, ev.Item, ev.Prev = Deleted, prev, prev
	} else {
		ev.Item = x.claim(NewItem(c.KV))
		if prev, ok := r.tree.Set(ev.Item); ok {
			ev.Type, ev.Prev = Modified, prev
		}
		r.bytes += int64(len(ev.Item.Value))
	}
	if ev.Prev != nil {
		r.bytes -= int64(len(ev.Prev.Value))
	}
	r.snap.Store(nil)
	r.last = ev.Revision
	r.ring.add(ev)
	return r
}

// release lets go of the waiters for which done holds. The lock is held.
func (x *Index) release(done func(waiter) bool) {
	kept := x.waiters[:0]
	for _, w := range x.waiters {
		if done(w) {
			close(w.ch)
		} else {
			kept = append(kept, w)
		}
	}
	x.waiters = kept
}

// Revision is the newest revision applied.
func (x *Index) Revision() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.rev
}

// Wait returns when revision has been applied, or the index was closed, or ctx has ended.
func (x *Index) Wait(ctx context.Context, revision int64) error {
	x.mu.Lock()
	if x.rev >= revision || x.closed != nil {
		defer x.mu.Unlock()
		if x.rev < revision {
			return x.closed
		}
		return nil
	}
	w := waiter{revision, make(chan struct{})}
	x.waiters = append(x.waiters, w)
	x.mu.Unlock()
	select {
	case <-w.ch:
		return x.afterWait(revision)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) afterWait(revision int64) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.rev < revision {
		return x.closed
	}
	return nil
}

// Close ends all waits and subscriptions with cause. What is indexed stays readable.
func (x *Index) Close(cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed != nil {
		return
	}
	x.closed = cause
	x.release(func(waiter) bool { return true })
	for s := range x.subs {
		s.wake()
	}
}

// Forget refuses from now on subscriptions that begin before revision, as the engine does once it has compacted: it could not say
// what an event replaced.
func (x *Index) Forget(revision int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.compacted = max(x.compacted, revision)
}

// Err is the cause given to Close, or nil.
func (x *Index) Err() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.closed
}

// Get returns the item of key and the revision of the look.
func (x *Index) Get(key string) (*Item, int64) {
	probe := Item{Key: key}
	dir := DirOf(key)
	x.mu.RLock()
	defer x.mu.RUnlock()
	r := x.resources[dir]
	if r == nil {
		return nil, x.rev
	}
	item, _ := r.tree.Get(&probe)
	return item, x.rev
}

// Snapshot returns the state of the resource that holds prefix, which must reach into one resource.
func (x *Index) Snapshot(prefix string) Snapshot {
	dir := DirOf(prefix)
	x.mu.RLock()
	r := x.resources[dir]
	if r == nil {
		defer x.mu.RUnlock()
		return Snapshot{Revision: x.rev, Last: x.loaded}
	}
	if t := r.snap.Load(); t != nil {
		defer x.mu.RUnlock()
		return Snapshot{tree: t, Revision: x.rev, Last: r.last}
	}
	x.mu.RUnlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freeze(r)
}

func (x *Index) freeze(r *resource) Snapshot {
	t := r.snap.Load()
	if t == nil {
		t = r.tree.Copy()
		r.snap.Store(t)
	}
	return Snapshot{tree: t, Revision: x.rev, Last: r.last}
}

// List returns the items with prefix, which may reach over many resources, in key order, and the revision of the look.
func (x *Index) List(prefix string) ([]*Item, int64) {
	x.mu.Lock()
	var snaps []Snapshot
	for _, r := range x.under(prefix) {
		snaps = append(snaps, x.freeze(r))
	}
	rev := x.rev
	x.mu.Unlock()
	var items []*Item
	for _, s := range snaps {
		s.Ascend(prefix, "", func(i *Item) bool { items = append(items, i); return true })
	}
	return items, rev
}

// under returns the resources that prefix reaches, in key order. The lock is held.
func (x *Index) under(prefix string) []*resource {
	if r := x.resources[DirOf(prefix)]; r != nil {
		return []*resource{r}
	}
	var rs []*resource
	for dir, r := range x.resources {
		if overlaps(dir, prefix) {
			rs = append(rs, r)
		}
	}
	sort.Slice(rs, func(i, j int) bool { return rs[i].dir < rs[j].dir })
	return rs
}

// Size is what is stored of one resource.
type Size struct {
	Objects int64
	Bytes   int64 // of their values
}

// Sizes returns what is stored, by resource directory.
func (x *Index) Sizes() map[string]Size {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sizes := make(map[string]Size, len(x.resources))
	for dir, r := range x.resources {
		sizes[dir] = Size{int64(r.tree.Len()), r.bytes}
	}
	return sizes
}

// Parked is a decoded object that waits under its key for its write to come back from the log.
type Parked struct {
	value []byte
	claim func(*Item)
	item  *Item
}

// Item is the item the write became; valid once its revision has been applied, nil if the write was not seen here.
func (p *Parked) Item() *Item { return p.item }

// Park announces a write of value to key. When it comes back, claim is called with its new item before anybody else sees it.
// The caller calls Unpark in the end.
func (x *Index) Park(key string, value []byte, claim func(*Item)) *Parked {
	p := &Parked{value: value, claim: claim}
	x.parkMu.Lock()
	x.parked[key] = append(x.parked[key], p)
	x.parkMu.Unlock()
	return p
}

// Unpark takes back what Park announced.
func (x *Index) Unpark(key string, p *Parked) {
	x.parkMu.Lock()
	defer x.parkMu.Unlock()
	list := x.parked[key]
	for i := range list {
		if list[i] == p {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(x.parked, key)
		return
	}
	x.parked[key] = list
}

// claim gives item its parked form, if the write is one of ours.
func (x *Index) claim(item *Item) *Item {
	x.parkMu.Lock()
	defer x.parkMu.Unlock()
	for _, p := range x.parked[item.Key] {
		if p.item == nil && bytes.Equal(p.value, item.Value) {
			item.Value = p.value
			p.item = item
			p.claim(item)
			break
		}
	}
	return item
}

// Size returns what is stored under prefix. For a whole resource it costs nothing.
func (x *Index) Size(prefix string) Size {
	x.mu.RLock()
	if r := x.resources[prefix]; r != nil {
		defer x.mu.RUnlock()
		return Size{int64(r.tree.Len()), r.bytes}
	}
	x.mu.RUnlock()
	var size Size
	items, _ := x.List(prefix)
	for _, i := range items {
		size.Objects++
		size.Bytes += int64(len(i.Value))
	}
	return size
}
