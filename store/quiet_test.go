package store_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/store"
)

const (
	// quietEnv is for how long TestP25_QuietStoreSyncsNothing looks; a minute is what the promise is about.
	quietEnv  = "NODEACTOR_QUIET"
	quietLook = 5 * time.Second
)

// TestP25_QuietStoreSyncsNothing: a store that nobody writes to does not wait for its disk once, however often it is tended. It runs
// alone, because the engine counts for the whole process.
func TestP25_QuietStoreSyncsNothing(t *testing.T) {
	look := quietLook
	if v := os.Getenv(quietEnv); v != "" {
		var err error
		if look, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, t.TempDir())
	put(t, s, "/registry/pods/a/one", "1")
	time.Sleep(6 * time.Second) // the engine settles its cluster version once, after the first boot
	before := counted(t, s)
	if before == 0 {
		t.Fatal("no sync was counted for a write")
	}
	for end := time.Now().Add(look); time.Now().Before(end); time.Sleep(time.Second) {
		if err := s.Maintain(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.Healthy(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if n := counted(t, s) - before; n != 0 {
		t.Errorf("%d syncs in %s", n, look)
	}
}

func counted(t *testing.T, s *store.Store) uint64 {
	t.Helper()
	st := s.Stats()
	if st.Syncs == nil {
		t.Fatal("syncs are not counted")
	}
	return st.Syncs.Total()
}
