package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/test/wire"
)

// trio is three members of one store in this process, with lines that can be cut.
type trio struct {
	stores [3]*store.Store
	wires  [3]*wire.Listener
	ips    [3]string
}

func openTrio(t *testing.T) *trio {
	t.Helper()
	tr, cluster, addrs := &trio{}, map[string]string{}, [3]string{}
	for i := range 3 {
		tr.ips[i] = fmt.Sprintf("127.0.0.%d", 31+i)
		l, err := net.Listen("tcp", tr.ips[i]+":0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[i] = l.Addr().String()
		cluster[string(rune('a'+i))] = "http://" + addrs[i]
		_ = l.Close()
	}
	var wg sync.WaitGroup
	for i := range 3 {
		name := string(rune('a' + i))
		cfg := store.Config{Dir: t.TempDir(), NodeName: name, Log: slog.New(slog.DiscardHandler), Peers: &store.Peers{
			Listen: addrs[i], URL: cluster[name], Source: tr.ips[i], Cluster: cluster, Token: t.Name(), Open: func() (_ net.Listener, err error) {
				tr.wires[i], err = wire.Listen(addrs[i])
				return tr.wires[i], err
			}}}
		wg.Go(func() {
			var err error
			if tr.stores[i], err = store.Open(context.Background(), cfg); err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { closeStore(t, tr.stores[i]) })
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return tr
}

func (tr *trio) isolate(i int) {
	for o := range 3 {
		if o != i {
			tr.wires[o].Cut(tr.ips[i])
			tr.wires[i].Cut(tr.ips[o])
		}
	}
}

// burst writes with many writers, through a member.
func burst(t *testing.T, s *store.Store, writes int) {
	t.Helper()
	const writers = 64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range writes / writers {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				_, err := s.Backend().Engine.Txn(ctx, engine.Write{Key: fmt.Sprintf("/registry/pods/a/%d", w), Expect: engine.AnyRevision, Value: []byte(fmt.Sprint(n))})
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestMemberFarBehindCatchesUp: a member that was cut off for so long that the others have let go of the log it has missed, and have forgotten the
// history, is given the whole state, and its readers go on: with what is there now, and with watches that say when they have missed something.
func TestMemberFarBehindCatchesUp(t *testing.T) {
	tr := openTrio(t)
	through, behind := 0, 2
	if tr.stores[behind].Status().Leader {
		behind = 1
	}
	put(t, tr.stores[through], "/registry/pods/a/gone", "1")
	at := put(t, tr.stores[through], "/registry/pods/a/0", "before")
	if err := tr.stores[behind].WaitApplied(context.Background(), at); err != nil {
		t.Fatal(err)
	}
	sub := tr.stores[behind].Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}, After: at})
	defer sub.Close()
	tr.isolate(behind)
	remove(t, tr.stores[through], "/registry/pods/a/gone")
	burst(t, tr.stores[through], 16_000)
	newest := put(t, tr.stores[through], "/registry/pods/a/0", "after")
	if err := tr.stores[through].CompactTo(context.Background(), newest); err != nil {
		t.Fatal(err)
	}
	if got := tr.stores[behind].Revision(); got >= newest {
		t.Fatalf("the member that is cut off is at %d", got)
	}
	for _, w := range tr.wires {
		w.Mend()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := tr.stores[behind].WaitApplied(ctx, newest); err != nil {
		t.Fatalf("the member does not catch up: %v, %v", err, tr.stores[behind].Err())
	}
	sameState(t, tr.stores[through], tr.stores[behind])
	if _, err := sub.Next(ctx); !errors.Is(err, store.ErrOverflow) && !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a watch that has missed something: %v", err)
	}
	fresh := tr.stores[behind].Subscribe(store.SubscribeOptions{Prefixes: []string{"/registry/pods/"}, After: newest})
	defer fresh.Close()
	put(t, tr.stores[through], "/registry/pods/a/0", "last")
	if got := next(t, fresh, 1); got != "MODIFIED 0 after>last;" {
		t.Errorf("a new watch: %s", got)
	}
}

func sameState(t *testing.T, a, b *store.Store) {
	t.Helper()
	want, _ := a.List("/registry/")
	got, _ := b.List("/registry/")
	if len(want) != len(got) {
		t.Fatalf("%d objects of %d", len(got), len(want))
	}
	for i := range want {
		if want[i].Key != got[i].Key || want[i].ModRevision != got[i].ModRevision || string(want[i].Value) != string(got[i].Value) {
			t.Errorf("%s at %d is %s at %d", want[i].Key, want[i].ModRevision, got[i].Key, got[i].ModRevision)
		}
	}
}
