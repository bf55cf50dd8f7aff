// Package storagetest is the suite that every storage.Store has to pass.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/cluster/lease"
	"github.com/nodeactor/nodeactor/cluster/lease/leasetest"
)

// patience is how long the suite waits for what a store has to tell.
const patience = 10 * time.Second

var one, two = lease.SessionID{Node: "one", Boot: "1"}, lease.SessionID{Node: "two", Boot: "1"}

// Run holds the stores that open makes, each of them empty, to what storage.Store promises. The suite closes them. Its time is the
// machine's.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	fresh := func(t *testing.T) storage.Store {
		s := open(t)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	t.Run("leases", func(t *testing.T) {
		leasetest.Run(t, func(t *testing.T) lease.Store { return leases{fresh(t)} })
	})
	for name, test := range map[string]func(*testing.T, storage.Store){
		"never written":              neverWritten,
		"expected revision":          expected,
		"values belong to callers":   owned,
		"delete":                     deleted,
		"names":                      names,
		"list":                       list,
		"long list":                  longList,
		"fence of another manifest":  fence,
		"append many":                appendMany,
		"watch from a revision":      watchFrom,
		"watch filter":               watchFilter,
		"watch misses nothing":       watchUnderWrites,
		"watch from the future":      watchFuture,
		"many writers of one object": manyWriters,
		"sessions":                   sessions,
		"closed":                     closed,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// leases is a storage.Store as package leasetest knows stores.
type leases struct{ storage.Store }

func (l leases) Get(ctx context.Context, manifest string) (lease.Stored, error) {
	return l.Lease(ctx, manifest)
}

func (l leases) List(ctx context.Context, visit func(string, lease.Stored) bool) error {
	_, err := l.Leases(ctx, visit)
	return err
}

func (l leases) CompareAndAppend(ctx context.Context, w lease.Write) (lease.Revision, error) {
	done, err := l.Append(ctx, []lease.Write{w})
	if err != nil {
		return 0, err
	}
	return done[0].Revision, done[0].Err
}

// WriteFenced writes at whatever revision the object has: only the fence decides.
func (l leases) WriteFenced(ctx context.Context, f lease.Fence, key string, value []byte) error {
	for {
		at, err := l.GetObject(ctx, id(key))
		if err != nil {
			return err
		}
		_, err = l.Write(ctx, storage.Write{Fence: &f, Expected: at.Revision, ID: id(key), Value: value})
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
}

func (l leases) Read(ctx context.Context, key string) ([]byte, error) {
	o, err := l.GetObject(ctx, id(key))
	return o.Value, err
}

func id(name string) storage.ID { return storage.ID{Kind: "Thing", Name: name} }

func want(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("got %v, want %v", err, sentinel)
	}
}

func put(t *testing.T, s storage.Store, name string, expected storage.Revision, value string) storage.Revision {
	t.Helper()
	r, err := s.Write(t.Context(), storage.Write{Expected: expected, ID: id(name), Value: []byte(value)})
	if err != nil || r <= expected {
		t.Fatalf("wrote %s over %d: %d, %v", name, expected, r, err)
	}
	return r
}

func get(t *testing.T, s storage.Store, name string) storage.Object {
	t.Helper()
	o, err := s.GetObject(t.Context(), id(name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func neverWritten(t *testing.T, s storage.Store) {
	if o := get(t, s, "a"); o.Revision != 0 || len(o.Value) != 0 || o.ID != id("a") {
		t.Errorf("read %+v", o)
	}
	r, err := s.ListObjects(t.Context(), "", func(o storage.Object) bool { t.Errorf("there is %+v", o); return true })
	if r != 0 || err != nil {
		t.Errorf("listed at %d, %v", r, err)
	}
}

func expected(t *testing.T, s storage.Store) {
	r := put(t, s, "a", 0, "1")
	for _, wrong := range []storage.Revision{0, r + 1, r - 1} {
		if wrong == r {
			continue
		}
		_, err := s.Write(t.Context(), storage.Write{Expected: wrong, ID: id("a"), Value: []byte("2")})
		want(t, err, storage.ErrConflict)
	}
	_, err := s.Write(t.Context(), storage.Write{Expected: r, ID: id("b"), Value: []byte("2")})
	want(t, err, storage.ErrConflict)
	if o := get(t, s, "a"); string(o.Value) != "1" || o.Revision != r {
		t.Errorf("a refused write was done: %+v", o)
	}
	put(t, s, "a", r, "3")
}

func owned(t *testing.T, s storage.Store) {
	value := []byte("mine")
	if _, err := s.Write(t.Context(), storage.Write{ID: id("a"), Value: value}); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	get(t, s, "a").Value[0] = 'Y'
	if got := get(t, s, "a").Value; string(got) != "mine" {
		t.Errorf("read %q", got)
	}
}

func deleted(t *testing.T, s storage.Store) {
	remove := func(expected storage.Revision) (storage.Revision, error) {
		return s.Write(t.Context(), storage.Write{Expected: expected, ID: id("a"), Delete: true})
	}
	_, err := remove(0)
	want(t, err, storage.ErrConflict)
	r := put(t, s, "a", 0, "1")
	_, err = remove(0)
	want(t, err, storage.ErrConflict)
	gone, err := remove(r)
	if err != nil || gone <= r {
		t.Fatalf("deleted at %d, %v", gone, err)
	}
	if o := get(t, s, "a"); o.Revision != 0 {
		t.Errorf("it is still there: %+v", o)
	}
	if again := put(t, s, "a", 0, "2"); again <= gone {
		t.Errorf("made again at %d, it was deleted at %d", again, gone)
	}
}

func names(t *testing.T, s storage.Store) {
	for _, bad := range []storage.ID{{Name: "n"}, {Kind: "K"}, {Kind: "K/L", Name: "n"}, {Kind: "K", Namespace: "a/b", Name: "n"}, {Kind: "K", Name: "n\x00"}} {
		_, err := s.Write(t.Context(), storage.Write{ID: bad})
		want(t, err, storage.ErrName)
	}
	_, err := s.Write(t.Context(), storage.Write{ID: id("a"), Value: make([]byte, storage.MaxValue+1)})
	want(t, err, storage.ErrTooLarge)
	if _, err = s.Write(t.Context(), storage.Write{ID: id("a"), Value: make([]byte, storage.MaxValue)}); err != nil {
		t.Error(err)
	}
}

func list(t *testing.T, s storage.Store) {
	all := []storage.ID{{Kind: "A", Name: "x"}, {Kind: "A", Namespace: "n", Name: "x"}, {Kind: "A", Namespace: "n", Name: "y"}, {Kind: "AB", Name: "x"}, {Kind: "B", Name: "x"}}
	var last storage.Revision
	for _, i := range []int{3, 1, 4, 0, 2} {
		r, err := s.Write(t.Context(), storage.Write{ID: all[i], Value: []byte(all[i].Key())})
		if err != nil {
			t.Fatal(err)
		}
		last = r
	}
	listed := func(kind string, most int) (ids []storage.ID) {
		r, err := s.ListObjects(t.Context(), kind, func(o storage.Object) bool {
			if string(o.Value) != o.Key() || o.Revision == 0 {
				t.Errorf("visited %+v", o)
			}
			ids = append(ids, o.ID)
			return len(ids) < most
		})
		if r != last || err != nil {
			t.Errorf("listed at %d, %v; the last write was %d", r, err, last)
		}
		return ids
	}
	for _, c := range []struct {
		kind string
		most int
		want []storage.ID
	}{{"A", 9, all[:3]}, {"", 9, all}, {"B", 9, all[4:]}, {"C", 9, nil}, {"", 2, all[:2]}} {
		if got := listed(c.kind, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.kind, got, c.want)
		}
	}
}

// longList has more than fits into a page, by number and by size.
func longList(t *testing.T, s storage.Store) {
	const many = 2500
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := w; i < many; i += 50 {
				if _, err := s.Write(t.Context(), storage.Write{ID: id(fmt.Sprintf("%05d", i)), Value: make([]byte, 500)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	next := 0
	_, err := s.ListObjects(t.Context(), "Thing", func(o storage.Object) bool {
		if o.Name != fmt.Sprintf("%05d", next) || len(o.Value) != 500 {
			t.Fatalf("%s comes at %d, with %d bytes", o.Name, next, len(o.Value))
		}
		next++
		return true
	})
	if next != many || err != nil {
		t.Errorf("%d of %d were listed, %v", next, many, err)
	}
}

func take(t *testing.T, s storage.Store, manifest string, by lease.SessionID) lease.Fence {
	t.Helper()
	at, err := s.Lease(t.Context(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	w := lease.Write{Manifest: manifest, Expected: at.Revision, Record: at.Record.Taken(by)}
	done, err := s.Append(t.Context(), []lease.Write{w})
	if err != nil || done[0].Err != nil {
		t.Fatal(err, done)
	}
	return lease.Fence{Manifest: manifest, Holder: by, Epoch: w.Record.Epoch}
}

// fence: a write is under the lease it names, whatever object it is of, and a delete is a write.
func fence(t *testing.T, s storage.Store) {
	f := take(t, s, id("a").Key(), one)
	write := func(f lease.Fence, w storage.Write) error {
		w.Fence = &f
		_, err := s.Write(t.Context(), w)
		return err
	}
	want(t, write(f, storage.Write{ID: id("b"), Value: []byte("1")}), nil)
	take(t, s, id("a").Key(), two)
	want(t, write(f, storage.Write{ID: id("b"), Expected: get(t, s, "b").Revision, Delete: true}), storage.ErrFenced)
	want(t, write(f, storage.Write{ID: id("b"), Expected: 99}), storage.ErrFenced) // before the revision
	if get(t, s, "b").Revision == 0 {
		t.Error("a fenced delete was done")
	}
}

// appendMany: each of many is refused or done by itself.
func appendMany(t *testing.T, s storage.Store) {
	take(t, s, "m1", two)
	writes := make([]lease.Write, 3)
	for i := range writes {
		writes[i] = lease.Write{Manifest: fmt.Sprint("m", i), Record: lease.Record{}.Taken(one)}
	}
	done, err := s.Append(t.Context(), writes)
	if err != nil || len(done) != 3 || done[0].Err != nil || done[2].Err != nil {
		t.Fatal(err, done)
	}
	want(t, done[1].Err, storage.ErrConflict)
	for i, holder := range []lease.SessionID{one, two, one} {
		got, err := s.Lease(t.Context(), fmt.Sprint("m", i))
		if err != nil || got.Holder != holder || done[i].Err == nil && got.Revision != done[i].Revision {
			t.Errorf("m%d: %+v, %v; answered %+v", i, got, err, done[i])
		}
	}
}

// watcher collects what a feed tells.
type watcher struct {
	storage.Feed
	news chan struct{}
}

func watch(t *testing.T, s storage.Store, from storage.Revision, f storage.Filter) watcher {
	t.Helper()
	news := make(chan struct{}, 1)
	feed, err := s.Watch(from, f, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(feed.Close)
	return watcher{feed, news}
}

// until takes changes until one satisfies done.
func (w watcher) until(t *testing.T, done func(storage.Change) bool) (all []storage.Change) {
	t.Helper()
	late, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		changes, err := w.Take()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, changes...)
		if slices.ContainsFunc(changes, done) {
			return all
		}
		select {
		case <-w.news:
		case <-late.Done():
			t.Fatalf("it does not come; there were %d changes", len(all))
		}
	}
}

func named(name string) func(storage.Change) bool {
	return func(c storage.Change) bool { return c.Manifest == "" && c.Object.Name == name }
}

var everything = storage.Filter{Objects: true, Leases: true}

func watchFrom(t *testing.T, s storage.Store) {
	first := put(t, s, "a", 0, "1")
	put(t, s, "b", 0, "1")
	take(t, s, id("b").Key(), one)
	put(t, s, "a", first, "2")
	w := watch(t, s, first, everything)
	put(t, s, "c", 0, "1")
	var last storage.Revision
	seen := map[string]string{}
	for _, c := range w.until(t, named("c")) {
		if c.Revision <= last {
			t.Errorf("revision %d after %d", c.Revision, last)
		}
		last = c.Revision
		if c.Manifest != "" {
			seen["lease "+c.Manifest] = c.Lease.Holder.Node
			continue
		}
		seen[c.Object.Name] = string(c.Object.Value)
	}
	for key, value := range map[string]string{"a": "2", "b": "1", "c": "1", "lease " + id("b").Key(): "one"} {
		if seen[key] != value {
			t.Errorf("%s is %q, want %q", key, seen[key], value)
		}
	}
	now := get(t, s, "c").Revision
	if _, err := s.Write(t.Context(), storage.Write{Expected: now, ID: id("c"), Delete: true}); err != nil {
		t.Fatal(err)
	}
	if all := w.until(t, named("c")); !all[len(all)-1].Deleted || all[len(all)-1].Object.Value != nil {
		t.Errorf("after a delete: %+v", all)
	}
}

func watchFilter(t *testing.T, s storage.Store) {
	w := watch(t, s, 0, storage.Filter{Kinds: []string{"Thing"}, Objects: true, KeysOnly: true})
	l := watch(t, s, 0, storage.Filter{Kinds: []string{"Thing"}, Leases: true})
	if _, err := s.Write(t.Context(), storage.Write{ID: storage.ID{Kind: "Other", Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	take(t, s, "Other//x", one)
	take(t, s, id("a").Key(), one)
	put(t, s, "a", 0, "value")
	if all := w.until(t, named("a")); len(all) != 1 || all[0].Object.Value != nil || all[0].Object.Revision == 0 {
		t.Errorf("told %+v", all)
	}
	if all := l.until(t, func(c storage.Change) bool { return c.Manifest == id("a").Key() }); len(all) != 1 {
		t.Errorf("told %+v", all)
	}
}

// watchUnderWrites: whoever reads and then watches knows in the end all there is, whatever is written meanwhile.
func watchUnderWrites(t *testing.T, s storage.Store) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			at := storage.Revision(0)
			for i := range 50 {
				r, err := s.Write(t.Context(), storage.Write{Expected: at, ID: id(fmt.Sprint("w", w)), Value: fmt.Append(nil, i)})
				if err != nil {
					t.Error(err)
					return
				}
				at = r
			}
		})
	}
	known := map[string]string{}
	from, err := s.ListObjects(t.Context(), "Thing", func(o storage.Object) bool { known[o.Name] = string(o.Value); return true })
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, s, from, everything)
	wg.Wait()
	put(t, s, "end", 0, "")
	for _, c := range w.until(t, named("end")) {
		known[c.Object.Name] = string(c.Object.Value)
	}
	for w := range 4 {
		if got := known[fmt.Sprint("w", w)]; got != "49" {
			t.Errorf("the last of w%d that was told is %q", w, got)
		}
	}
}

// watchFuture: of changes that are not there yet nothing can be told.
func watchFuture(t *testing.T, s storage.Store) {
	late, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	news := make(chan struct{}, 100)
	feed, err := s.Watch(99, everything, func() { news <- struct{}{} })
	for err == nil {
		select {
		case <-news:
		case <-late.Done():
			t.Fatal("it is not told that there is nothing to tell")
		}
		_, err = feed.Take()
	}
	want(t, err, storage.ErrCompacted)
}

// manyWriters: of all who write an object at one revision one does.
func manyWriters(t *testing.T, s storage.Store) {
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := s.Write(t.Context(), storage.Write{ID: id("a")})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, storage.ErrConflict):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have written it", won.Load())
	}
}

func sessions(t *testing.T, s storage.Store) {
	news := make(chan struct{}, 100)
	feed := s.WatchSessions(func() { news <- struct{}{} })
	t.Cleanup(feed.Close)
	until := func(what string, done func(storage.Membership) bool) {
		t.Helper()
		late, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			if m, any := feed.Take(); any && done(m) {
				return
			}
			select {
			case <-news:
			case <-late.Done():
				t.Fatalf("it is not told that %s", what)
			}
		}
	}
	live := func(m storage.Membership, id lease.SessionID, leaving bool) bool {
		return slices.Contains(m.Live, lease.Session{ID: id, Leaving: leaving})
	}
	until("there is nobody", func(m storage.Membership) bool { return len(m.Live) == 0 })
	want(t, s.Renew(t.Context(), one, false), nil)
	want(t, s.Renew(t.Context(), two, false), nil)
	until("there are two", func(m storage.Membership) bool { return live(m, one, false) && live(m, two, false) })
	want(t, s.Renew(t.Context(), one, true), nil)
	until("one is leaving", func(m storage.Membership) bool { return live(m, one, true) })
	want(t, s.End(t.Context(), one), nil)
	until("one has left", func(m storage.Membership) bool { return len(m.Live) == 1 && live(m, two, false) })
	want(t, s.Renew(t.Context(), one, false), lease.ErrSessionEnded)
}

func closed(t *testing.T, s storage.Store) {
	feed, err := s.Watch(0, everything, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.Write(t.Context(), storage.Write{ID: id("a")})
	want(t, err, storage.ErrClosed)
	_, err = s.GetObject(t.Context(), id("a"))
	want(t, err, storage.ErrClosed)
	_, err = feed.Take()
	want(t, err, storage.ErrClosed)
	want(t, s.Renew(t.Context(), one, false), storage.ErrClosed)
	_, err = s.Watch(0, everything, func() {})
	want(t, err, storage.ErrClosed)
	feed.Close()
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}
