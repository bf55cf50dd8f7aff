package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
)

// TestP21_VanishedStoreIsNotMadeAnew: a store that was there and is gone is damage; only where none ever was is one made.
func TestP21_VanishedStoreIsNotMadeAnew(t *testing.T) {
	dir := t.TempDir()
	p := &parts{cfg: Config{DataDir: dir}, log: slog.New(slog.DiscardHandler), clock: supervision.RealClock()}
	cfg := store.Config{Dir: filepath.Join(dir, StoreDir), NodeName: "n", Log: p.log, Clock: p.clock}
	for range 2 { // the second time it is there
		s, err := p.openOwn(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for what, gone := range map[string]string{"all of it": cfg.Dir, "its files": filepath.Join(cfg.Dir, "member")} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		_, err := p.openOwn(t.Context(), cfg)
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), cfg.Dir) {
			t.Errorf("%s removed: %v", what, err)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, "member")); err == nil {
			t.Errorf("%s removed: a store was made", what)
		}
	}
}

// TestADamagedNodeRecordIsRefused: what it said, the node's name and where its store is, must not be forgotten silently.
func TestADamagedNodeRecordIsRefused(t *testing.T) {
	dir := plant(t, t.TempDir(), rememberFile)
	err := remember(Config{DataDir: dir, NodeName: "n"})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), rememberFile) {
		t.Errorf("got %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, rememberFile)); string(b) != "x" {
		t.Errorf("it was overwritten: %q", b)
	}
}

func TestARestoreNeedsAStoreOfTheNodesOwn(t *testing.T) {
	dir := t.TempDir()
	if err := HasOwnStore(dir); err != nil {
		t.Error(err)
	}
	if err := remember(Config{DataDir: dir, NodeName: "n", StoreEndpoints: "https://10.0.0.9:2379"}); err != nil {
		t.Fatal(err)
	}
	if err := HasOwnStore(dir); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "https://10.0.0.9:2379") {
		t.Errorf("got %v", err)
	}
}
