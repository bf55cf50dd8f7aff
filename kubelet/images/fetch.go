package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/nodeactor/nodeactor/supervision"
)

// parallelFetches is how many layers of one image are fetched ahead of the one being unpacked.
const parallelFetches = 3

// fetcher fetches the later layers of an image into files while the earlier are being unpacked: registries often give
// one connection only a part of what the line could carry.
type fetcher struct {
	in    *install
	dir   string
	group *supervision.Group
	slots chan struct{}
	ready map[int]chan struct{} // by layer; closed when its file is complete

	mu     sync.Mutex
	failed error // of the first fetch that failed
}

// fetchAhead starts fetching layers, in the order given. The caller must call stop.
func (in *install) fetchAhead(ctx context.Context, layers []int, t *tally) (*fetcher, error) {
	dir, err := in.s.tempDir("fetch")
	if err != nil {
		return nil, spaceError(err)
	}
	f := &fetcher{in: in, dir: dir, group: supervision.NewGroup(ctx, "images", nil),
		slots: make(chan struct{}, parallelFetches), ready: map[int]chan struct{}{}}
	for _, i := range layers {
		f.ready[i] = make(chan struct{})
	}
	f.group.Go("fetches", func(ctx context.Context) error { return f.start(ctx, layers, t) })
	return f, nil
}

// start keeps as many fetches going as there are slots.
func (f *fetcher) start(ctx context.Context, layers []int, t *tally) error {
	for _, i := range layers {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f.slots <- struct{}{}:
		}
		f.group.Go(fmt.Sprintf("layer %s", f.in.src.diffIDs[i]), func(ctx context.Context) error {
			defer func() { <-f.slots }()
			return f.blame(f.fetch(ctx, i, t))
		})
	}
	return nil
}

func (f *fetcher) fetch(ctx context.Context, i int, t *tally) error {
	blob, err := f.in.src.open(i)
	if err != nil {
		return err
	}
	defer blob.Close()
	file, err := os.OpenFile(f.path(i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return spaceError(err)
	}
	_, err = io.Copy(&roomyWriter{w: file, room: f.in.s.room}, &meter{ctx: ctx, r: blob, tally: t})
	if err := errors.Join(err, file.Close()); err != nil {
		return spaceError(err)
	}
	close(f.ready[i])
	return nil
}

// blame remembers the first error: what fails after it fails because of it.
func (f *fetcher) blame(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return err
}

// open waits for a layer and opens it. known is false for a layer that is not being fetched ahead.
func (f *fetcher) open(i int) (blob io.ReadCloser, known bool, err error) {
	if f == nil || f.ready[i] == nil {
		return nil, false, nil
	}
	select {
	case <-f.ready[i]:
		file, err := os.Open(f.path(i))
		return file, true, err
	case <-f.group.Context().Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		return nil, true, cmp.Or(f.failed, context.Cause(f.group.Context()))
	}
}

func (f *fetcher) path(i int) string { return filepath.Join(f.dir, fmt.Sprint(i)) }

// stop ends all fetches and removes what they fetched. The context of the pull should have ended, so that no fetch is left
// waiting for its registry.
func (f *fetcher) stop() {
	if f == nil {
		return
	}
	f.group.Cancel()
	if err := f.group.Wait(); err != nil {
		f.in.s.log.Debug("fetching layers ended", "err", err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		f.in.s.log.Warn("cannot remove fetched layers", "path", f.dir, "err", err)
	}
}
