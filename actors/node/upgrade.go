package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/nodeactor/nodeactor/store/snapshot"
	"github.com/nodeactor/nodeactor/supervision"
)

// versionFile holds the version of the program that last ran on a data directory.
const versionFile = "version"

// lastVersion is the version that last ran on dir; empty when none has said so.
func lastVersion(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, versionFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// beforeOpening leaves the store as it has to be before this version opens it: an interrupted restore is ended, and what another version
// has written is saved first. A save that is not possible is told, and does not keep the node from starting.
func beforeOpening(ctx context.Context, cfg Config, clock supervision.Clock, log *slog.Logger) error {
	dir := filepath.Join(cfg.DataDir, StoreDir)
	if err := snapshot.Settle(dir, snapshot.Options{Clock: clock, Log: log}); err != nil {
		return err
	}
	last := lastVersion(cfg.DataDir)
	if last == cfg.Version {
		return nil
	}
	saveForUpgrade(ctx, cfg, last, clock, log)
	if ctx.Err() != nil {
		return nil // told to stop before it has begun: the next start saves
	}
	return replaceFile(filepath.Join(cfg.DataDir, versionFile), []byte(cfg.Version+"\n"))
}

func saveForUpgrade(ctx context.Context, cfg Config, last string, clock supervision.Clock, log *slog.Logger) {
	source, size, err := snapshot.Stopped(filepath.Join(cfg.DataDir, StoreDir))
	if errors.Is(err, os.ErrNotExist) {
		return // there is no store yet
	}
	if last == "" {
		last = "one that did not say"
	}
	log.Info("another version of the program opens the store now: it is saved first", "last version", last, "this version", cfg.Version)
	dir := filepath.Join(cfg.DataDir, snapshot.Dir)
	var info snapshot.Info
	if err == nil {
		info, err = snapshot.Save(ctx, dir, snapshot.Upgrade, source, snapshot.SaveOptions{Clock: clock, Size: size})
	}
	if err != nil {
		log.Warn("the store could not be saved before the upgrade; it is opened all the same", "reason", err)
		return
	}
	log.Info("the store was saved", "snapshot", info.Name(), "bytes", info.Size)
	if _, err := snapshot.Prune(dir, cfg.SnapshotKeep, info); err != nil {
		log.Warn("cannot remove old snapshots", "reason", err)
	}
}
