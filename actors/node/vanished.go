package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nodeactor/nodeactor/store"
)

// openedFile lies beside the store once it has been opened: an empty place of it is then no new node's, but a store that is gone, such as
// when its disk is not mounted.
const openedFile = StoreDir + ".opened"

// openOwn opens the store of this process, but no empty one in place of one that has gone.
func (p *parts) openOwn(ctx context.Context, cfg store.Config) (*store.Store, error) {
	if err := vanished(p.cfg.DataDir, cfg.Dir); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, cfg)
	if err == nil {
		p.logClose("the note that the store was opened", noteOpened(p.cfg.DataDir))
	}
	return s, err
}

// vanished refuses a store of which nothing is left.
func vanished(dataDir, dir string) error {
	if _, err := os.Stat(filepath.Join(dataDir, openedFile)); err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot open store %s: %w: it was here before and is gone; if it lies on a disk of its own, mount it", dir, store.ErrDamaged)
	}
	return nil
}

// noteOpened writes once; a start that finds the note writes nothing.
func noteOpened(dataDir string) error {
	path := filepath.Join(dataDir, openedFile)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return os.WriteFile(path, nil, 0o600)
}
