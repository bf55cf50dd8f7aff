// Package leasetest is the suite that every lease.Store has to pass.
package leasetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/cluster/lease"
)

var a, b = lease.SessionID{Node: "a", Boot: "1"}, lease.SessionID{Node: "b", Boot: "1"}

// Run holds the stores that open makes, each of them empty, to what lease.Store promises.
func Run(t *testing.T, open func(t *testing.T) lease.Store) {
	for name, test := range map[string]func(*testing.T, lease.Store){
		"never written":   neverWritten,
		"epochs":          epochs,
		"expected":        expected,
		"fences":          fences,
		"list":            list,
		"one of many":     oneOfMany,
		"fence and taker": fenceAndTaker,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func appendTo(t *testing.T, s lease.Store, manifest string, r lease.Record) lease.Revision {
	t.Helper()
	old, err := s.Get(t.Context(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	w := lease.Write{Manifest: manifest, Expected: old.Revision, Record: r}.At(time.Unix(1e9, 1000))
	rev, err := s.CompareAndAppend(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), manifest)
	same := got.Holder == r.Holder && got.Epoch == r.Epoch && got.AcquiredAt.Equal(w.Record.AcquiredAt)
	if err != nil || got.Revision != rev || rev <= old.Revision || !same {
		t.Fatalf("wrote %v at %d over %d, read %v, %v", w.Record, rev, old.Revision, got, err)
	}
	return rev
}

func want(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("got %v, want %v", err, sentinel)
	}
}

func neverWritten(t *testing.T, s lease.Store) {
	if got, err := s.Get(t.Context(), "m"); err != nil || got != (lease.Stored{}) {
		t.Fatalf("read %v, %v", got, err)
	}
	want(t, s.WriteFenced(t.Context(), lease.Fence{Manifest: "m"}, "k", nil), lease.ErrFenced)
	if v, err := s.Read(t.Context(), "k"); v != nil || err != nil {
		t.Fatalf("read %q, %v", v, err)
	}
}

func epochs(t *testing.T, s lease.Store) {
	taken := lease.Record{}.Taken(a)
	rev := appendTo(t, s, "m", taken)
	for _, r := range []lease.Record{{Holder: b, Epoch: 1}, {Holder: b, Epoch: 3}, {}, {Epoch: 2}} {
		_, err := s.CompareAndAppend(t.Context(), lease.Write{Manifest: "m", Expected: rev, Record: r})
		want(t, err, lease.ErrEpoch)
	}
	appendTo(t, s, "m", taken.Released())
	appendTo(t, s, "m", taken.Released().Taken(b))
}

func expected(t *testing.T, s lease.Store) {
	rev := appendTo(t, s, "m", lease.Record{}.Taken(a))
	for _, expected := range []lease.Revision{0, rev + 1} {
		_, err := s.CompareAndAppend(t.Context(), lease.Write{Manifest: "m", Expected: expected, Record: lease.Record{Holder: b, Epoch: 2}})
		want(t, err, lease.ErrConflict)
	}
	if got, _ := s.Get(t.Context(), "m"); got.Revision != rev || got.Holder != a {
		t.Fatalf("a refused write was done: %v", got)
	}
}

func fences(t *testing.T, s lease.Store) {
	r := lease.Record{}.Taken(a)
	appendTo(t, s, "m", r)
	mine := lease.Fence{Manifest: "m", Holder: a, Epoch: 1}
	value := []byte("one")
	want(t, s.WriteFenced(t.Context(), mine, "k", value), nil)
	value[0] = 'X'
	for _, f := range []lease.Fence{{Manifest: "m", Holder: b, Epoch: 1}, {Manifest: "m", Holder: a, Epoch: 2}, {Manifest: "n", Holder: a, Epoch: 1}} {
		want(t, s.WriteFenced(t.Context(), f, "k", []byte("two")), lease.ErrFenced)
	}
	appendTo(t, s, "m", r.Released())
	want(t, s.WriteFenced(t.Context(), mine, "k", []byte("two")), lease.ErrFenced)
	appendTo(t, s, "m", r.Taken(a))
	want(t, s.WriteFenced(t.Context(), mine, "k", []byte("two")), lease.ErrFenced)
	if v, err := s.Read(t.Context(), "k"); string(v) != "one" || err != nil {
		t.Fatalf("read %q, %v", v, err)
	}
}

func list(t *testing.T, s lease.Store) {
	for _, m := range []string{"c", "a/b", "a"} {
		appendTo(t, s, m, lease.Record{}.Taken(a))
	}
	var names []string
	visit := func(m string, _ lease.Stored) bool { names = append(names, m); return len(names) < 4 }
	want(t, s.List(t.Context(), visit), nil)
	want(t, s.List(t.Context(), visit), nil)
	if !slices.Equal(names, []string{"a", "a/b", "c", "a"}) {
		t.Fatalf("listed %q", names)
	}
}

// oneOfMany: of many who take a lease at once one gets it.
func oneOfMany(t *testing.T, s lease.Store) {
	var won atomic.Int32
	t.Run("all", func(t *testing.T) {
		for i := range 20 {
			id := lease.SessionID{Node: fmt.Sprint("n", i), Boot: "1"}
			t.Run(id.Node, func(t *testing.T) {
				t.Parallel()
				_, err := s.CompareAndAppend(t.Context(), lease.Write{Manifest: "m", Record: lease.Record{}.Taken(id)})
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, lease.ErrConflict) {
					t.Error(err)
				}
			})
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d have taken it", won.Load())
	}
}

// fenceAndTaker: while leases change hands, what the loser writes is never accepted after the winner's first write.
func fenceAndTaker(t *testing.T, s lease.Store) {
	r := lease.Record{}.Taken(a)
	appendTo(t, s, "m", r)
	for i := range 20 {
		next := r.Taken(b)
		if i%2 == 1 {
			next = r.Taken(a)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Run("loser", func(t *testing.T) {
				t.Parallel()
				for range 1000 {
					if write(t, s, r) != nil {
						return
					}
				}
			})
			t.Run("winner", func(t *testing.T) {
				t.Parallel()
				appendTo(t, s, "m", next)
				want(t, write(t, s, next), nil)
			})
		})
		if v, _ := s.Read(t.Context(), "k"); string(v) != next.Holder.Node {
			t.Fatalf("the value is that of %q, who has lost the lease to %s", v, next.Holder)
		}
		r = next
	}
}

// write stores who the holder is under its fence.
func write(t *testing.T, s lease.Store, r lease.Record) error {
	return s.WriteFenced(t.Context(), lease.Fence{Manifest: "m", Holder: r.Holder, Epoch: r.Epoch}, "k", []byte(r.Holder.Node))
}
