package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
)

const (
	// smallQuota is soon spent.
	smallQuota = 24 << 20
	// recoverLimit is what a store may take to go on once there is room.
	recoverLimit = 2 * time.Second
	bigValue     = 200_000
)

// openWithin opens a store with a quota, and tends it as a node does until the test ends.
func openWithin(t *testing.T, dir string, quota int64) *store.Store {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := store.Open(context.Background(), store.Config{Dir: dir, NodeName: "test", QuotaBytes: quota, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	tendOn(t, s)
	return s
}

func attempt(s *store.Store, w engine.Write) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	res, err := s.Backend().Engine.Txn(ctx, w)
	if err == nil {
		err = s.WaitApplied(ctx, res.Revision)
	}
	return err
}

// fillUp creates objects until the store takes no more; it returns how many there are.
func fillUp(t *testing.T, s *store.Store) (n int, refusal error) {
	t.Helper()
	value := []byte(strings.Repeat("x", bigValue))
	for ; n < 10_000; n++ {
		if err := attempt(s, engine.Write{Key: fmt.Sprintf("/registry/configmaps/a/%05d", n), Value: value}); err != nil {
			return n, err
		}
	}
	t.Fatal("the store takes everything")
	return n, nil
}

// TestP23_FullStoreTakesWhatMakesRoom: over its quota a store refuses what needs room with the reason and the way out, and takes what
// makes room or must go on; it takes everything again within two seconds of a deletion.
func TestP23_FullStoreTakesWhatMakesRoom(t *testing.T) {
	s := openWithin(t, t.TempDir(), smallQuota)
	n, refusal := fillUp(t, s)
	if !errors.Is(refusal, store.ErrNoSpace) || !strings.Contains(refusal.Error(), "--store-quota") {
		t.Fatalf("after %d objects: %v", n, refusal)
	}
	if low, high := smallQuota/bigValue*8/10, smallQuota/bigValue; n < low || n > high+2 {
		t.Errorf("%d objects fit, not %d to %d", n, low, high)
	}
	if !errors.Is(s.Refusal(), store.ErrNoSpace) {
		t.Errorf("the store says %v", s.Refusal())
	}
	if item, ok := s.Get("/registry/configmaps/a/00000"); !ok || len(item.Value) != bigValue {
		t.Error("what is stored cannot be read")
	}
	// A lease is renewed, for much longer than its history would have room.
	for i := range 2000 {
		if err := attempt(s, engine.Write{Key: "/registry/leases/a/one", Expect: engine.AnyRevision, Value: []byte(fmt.Sprint(i)), Frees: true}); err != nil {
			t.Fatalf("renewal %d: %v", i, err)
		}
	}
	for i := range n / 4 {
		if err := attempt(s, engine.Write{Key: fmt.Sprintf("/registry/configmaps/a/%05d", i), Expect: engine.AnyRevision, Delete: true}); err != nil {
			t.Fatalf("deletion %d: %v", i, err)
		}
	}
	deleted := time.Now()
	for i := 0; ; i++ {
		err := attempt(s, engine.Write{Key: fmt.Sprintf("/registry/configmaps/b/%05d", i), Value: []byte("x")})
		if err == nil {
			break
		}
		if time.Since(deleted) > recoverLimit {
			t.Fatalf("%s after there was room: %v", time.Since(deleted), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%d objects filled it; writes were taken again %s after the last deletion", n, time.Since(deleted).Round(time.Millisecond))
	if st := s.Stats(); st.Refused[engine.ForQuota] == 0 {
		t.Errorf("no refusal was counted: %+v", st)
	}
}

// TestP23_HistoryFillsNoStore: updates that fill the quota many times over, with objects that do not, are never refused.
func TestP23_HistoryFillsNoStore(t *testing.T) {
	s := openWithin(t, t.TempDir(), smallQuota)
	value := strings.Repeat("x", bigValue)
	for i := range 2 * smallQuota / bigValue {
		err := attempt(s, engine.Write{Key: fmt.Sprintf("/registry/configmaps/a/%d", i%10), Expect: engine.AnyRevision, Value: []byte(fmt.Sprint(value, i))})
		if err != nil {
			t.Fatalf("update %d: %v; %+v", i, err, s.Stats())
		}
	}
	st := s.Stats()
	t.Logf("file %d MB, in use %d MB", st.DBSize>>20, st.DBInUse>>20)
}
