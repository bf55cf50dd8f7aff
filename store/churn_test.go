package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/store/engine"
	"github.com/nodeactor/nodeactor/supervision"
)

const (
	// churnEnv is how many updates TestP23_Churn makes: 200,000 are those of a day.
	churnEnv     = "NODEACTOR_CHURN"
	churnUpdates = 20_000
	churnObjects = 1000
	churnBytes   = 1024
	churnWriters = 16
	// churnSpeed is how much faster time goes for maintenance: a day takes half a minute.
	churnSpeed = 2880
	// logLimit bounds the log: the segments the engine keeps, one in use and one prepared.
	logLimit = 7 * 8 << 20
	// purgeLimit is what the engine may take to remove old segments: it looks every half minute.
	purgeLimit = 40 * time.Second
)

// compressed is a clock on which time goes faster.
type compressed struct {
	supervision.Clock
	begin time.Time
}

func (c compressed) Now() time.Time {
	now := c.Clock.Now()
	return now.Add(now.Sub(c.begin) * (churnSpeed - 1))
}

func (c compressed) AfterFunc(d time.Duration, f func()) func() bool {
	return c.Clock.AfterFunc(d/churnSpeed, f)
}

func (c compressed) Sleep(ctx context.Context, d time.Duration) error {
	return c.Clock.Sleep(ctx, d/churnSpeed)
}

// tendOn tends the store until the test ends.
func tendOn(t *testing.T, s *store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.AwaitDue(ctx) == nil {
			if err := s.Tend(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("cannot tend the store: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// bytesBelow is what all files of a directory take of the disk; the database's file is longer than that, it has a hole at its end.
func bytesBelow(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// churn makes n updates with many writers.
func churn(t *testing.T, s *store.Store, n int) {
	t.Helper()
	var next atomic.Int64
	var writers sync.WaitGroup
	for range churnWriters {
		writers.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				value := bytes.Repeat([]byte{byte(i)}, churnBytes)
				key := fmt.Sprintf("/registry/configmaps/default/object-%04d", i*7919%churnObjects)
				if _, err := s.Backend().Engine.Txn(context.Background(), engine.Write{Key: key, Expect: engine.AnyRevision, Value: value}); err != nil {
					t.Errorf("update %d: %v", i, err)
					return
				}
			}
		})
	}
	writers.Wait()
}

// TestP23_Churn: after a day of updates the store's file is at most twice what is stored, and its log is bounded; nothing was refused.
func TestP23_Churn(t *testing.T) {
	updates := churnUpdates
	if v := os.Getenv(churnEnv); v != "" {
		var err error
		if updates, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	s := openStore(t, dir)
	s.TendBy(compressed{supervision.RealClock(), time.Now()})
	tendOn(t, s)
	begin := time.Now()
	churn(t, s, updates)
	took, peak := time.Since(begin), s.Stats().DBSize
	live := int64(0)
	items, _ := s.List("/registry/")
	for _, item := range items {
		live += int64(len(item.Key) + len(item.Value))
	}
	db, logs := filepath.Join(dir, "member/snap/db"), filepath.Join(dir, "member/wal")
	size := func() int64 { return bytesBelow(t, filepath.Dir(db)) }
	// The library knows of the new file's size a moment after the file has its name.
	for deadline := time.Now().Add(20 * time.Second); (size() > 2*live || s.Stats().DBSize > 2*live) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	for deadline := time.Now().Add(purgeLimit); bytesBelow(t, logs) > logLimit && time.Now().Before(deadline); {
		time.Sleep(500 * time.Millisecond)
	}
	st := s.Stats()
	t.Logf("%d updates in %s; file at the end of them %d KB, then %d KB with %d in use, live data %d KB, log %d MB, %d rewrites took %s", updates,
		took.Round(time.Millisecond), peak>>10, size()>>10, st.DBInUse>>10, live>>10, bytesBelow(t, logs)>>20, st.Defrags, st.DefragTime.Round(time.Millisecond))
	if size() > 2*live || st.DBSize > 2*live {
		t.Errorf("the files of the database take %d bytes, its pages %d, for %d that are stored", size(), st.DBSize, live)
	}
	if n := bytesBelow(t, logs); n > logLimit {
		t.Errorf("the log has %d MB", n>>20)
	}
	if len(items) != churnObjects || st.Refused[engine.ForStall]+st.Refused[engine.ForQuota]+st.Refused[engine.ForDisk] > 0 {
		t.Errorf("%d objects; refused %v", len(items), st.Refused)
	}
	if lag := st.Revision - st.CompactedRevision; lag > churnObjects {
		t.Errorf("%d revisions of history are left", lag)
	}
}
