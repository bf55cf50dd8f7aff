package storage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/actors/operator/storage"
	"github.com/nodeactor/nodeactor/actors/operator/storage/storagetest"
	"github.com/nodeactor/nodeactor/cluster/lease"
)

func openShared(t *testing.T, dir string, opts ...storage.Option) *storage.SharedStore {
	t.Helper()
	s, err := storage.OpenShared(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestF101_SharedIsAStore: a shared store passes the suite, for the process that has the file and for the others.
func TestF101_SharedIsAStore(t *testing.T) {
	t.Run("host", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store { return openShared(t, t.TempDir()) })
	})
	t.Run("guest", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store {
			dir := t.TempDir()
			host, guest := openShared(t, dir), openShared(t, dir)
			if !host.Hosting() || guest.Hosting() {
				t.Error("the second one is the host")
			}
			return guest
		})
	})
	t.Run("a long path", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
		openShared(t, dir)
		s := openShared(t, dir)
		if _, err := s.Write(t.Context(), storage.Write{ID: thing("a")}); err != nil {
			t.Error(err)
		}
	})
}

// TestF101_SharedHostGoes: while processes come and go, those that stay lose nothing that was answered, and hear of everything.
func TestF101_SharedHostGoes(t *testing.T) {
	dir := t.TempDir()
	stays := openShared(t, t.TempDir()) // of another directory: none of this is its concern
	first := openShared(t, dir)
	reader := openShared(t, dir)
	news := make(chan struct{}, 1)
	feed, err := reader.Watch(0, storage.Filter{Objects: true}, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	host, written := first, 0
	for round := range 6 {
		next := openShared(t, dir)
		for i := range 20 {
			written++
			id, value := thing(fmt.Sprint("m", i)), fmt.Sprint(written)
			at, err := next.GetObject(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := next.Write(t.Context(), storage.Write{Expected: at.Revision, ID: id, Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
			last[id.Name] = value
		}
		if err := host.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		host = next
	}
	seen := map[string]string{}
	deadline := time.After(20 * time.Second)
	for len(seen) < 20 || seen["m19"] != last["m19"] {
		select {
		case <-news:
		case <-deadline:
			t.Fatalf("saw %v, want %v", seen, last)
		}
		changes, err := feed.Take()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			seen[c.Object.Name] = string(c.Object.Value)
		}
	}
	for name, value := range last {
		if o, err := reader.GetObject(t.Context(), thing(name)); err != nil || string(o.Value) != value || seen[name] != value {
			t.Errorf("%s: read %q (%v), saw %q, want %q", name, o.Value, err, seen[name], value)
		}
	}
	if o, err := stays.GetObject(t.Context(), thing("m0")); err != nil || o.Revision != 0 {
		t.Errorf("another store has %+v, %v", o, err)
	}
}

// TestF096_SharedAnnouncesTheEnd: that a process has ended is told of its sessions, whether it was the host or not, and taken back
// when the session is heard of again.
func TestF096_SharedAnnouncesTheEnd(t *testing.T) {
	one, two := lease.SessionID{Node: "one", Boot: "1"}, lease.SessionID{Node: "two", Boot: "1"}
	for _, c := range []struct {
		name     string
		hostEnds bool
		opts     []storage.Option
		want     bool
	}{
		{"guest", false, nil, true}, {"host", true, nil, true}, {"guest, not announced", false, []storage.Option{storage.WithoutAnnouncements()}, false},
		{"host, not announced", true, []storage.Option{storage.WithoutAnnouncements()}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ends := openShared(t, dir, c.opts...)
			stays := openShared(t, dir, c.opts...)
			if !c.hostEnds {
				ends, stays = stays, ends
			}
			hold(t, ends, one)
			hold(t, stays, two)
			news := make(chan struct{}, 1)
			feed := stays.WatchSessions(func() {
				select {
				case news <- struct{}{}:
				default:
				}
			})
			if err := ends.Close(); err != nil {
				t.Fatal(err)
			}
			dead := func(within time.Duration, want int) bool {
				late := time.After(within)
				for {
					if m, any := feed.Take(); any && len(m.Dead) == want && (want == 0 || m.Dead[0] == one) {
						return true
					}
					select {
					case <-news:
					case <-late:
						return false
					}
				}
			}
			if !c.want {
				if dead(500*time.Millisecond, 1) {
					t.Error("the end is announced")
				}
				return
			}
			if !dead(5*time.Second, 1) {
				t.Fatal("the end is not announced")
			}
			if err := stays.Renew(t.Context(), one, false); err != nil {
				t.Fatal(err)
			}
			if !dead(5*time.Second, 0) {
				t.Error("it is not taken back")
			}
		})
	}
}

// hold lets a session hold a lease of its own.
func hold(t *testing.T, s storage.Store, id lease.SessionID) {
	t.Helper()
	if err := s.Renew(t.Context(), id, false); err != nil {
		t.Fatal(err)
	}
	done, err := s.Append(t.Context(), []lease.Write{{Manifest: thing(id.Node).Key(), Record: lease.Record{}.Taken(id)}})
	if err != nil || done[0].Err != nil {
		t.Fatal(done, err)
	}
}

// TestF101_SharedRefusals: a damaged file is refused by name, with the way out, and the directory is free again.
func TestF101_SharedRefusals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("garbage", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := storage.OpenShared(dir); !errors.Is(err, storage.ErrCorrupt) || !strings.Contains(err.Error(), path) {
			t.Fatalf("garbage: %v", err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	openShared(t, dir)
}
