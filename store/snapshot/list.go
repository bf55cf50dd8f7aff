package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// namesAtOnce is how many names are read from a directory in one go.
const namesAtOnce = 1000

// List goes through the snapshots of dir, the newest first, without opening one. Only the names are held in memory, each file is asked for its
// size when its turn comes; other files are passed over. A directory that is absent has none. After an error there is nothing more.
func List(dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		all, err := names(dir)
		if err != nil {
			yield(Info{}, fmt.Errorf("cannot list snapshots in %s: %w", dir, err))
			return
		}
		for _, info := range all {
			info.Path = filepath.Join(dir, info.Path)
			stat, err := os.Stat(info.Path)
			if errors.Is(err, os.ErrNotExist) {
				continue // removed since
			}
			if err != nil {
				yield(Info{}, fmt.Errorf("cannot list snapshots: %w", err))
				return
			}
			if info.Size = stat.Size(); stat.Mode().IsRegular() && !yield(info, nil) {
				return
			}
		}
	}
}

// Latest is the newest snapshot of dir by its name, good or not; ok is false when there is none.
func Latest(dir string) (info Info, ok bool, err error) {
	for info, err := range List(dir) {
		return info, err == nil, err
	}
	return Info{}, false, nil
}

// names are the snapshots of dir as their names tell, the newest first.
func names(dir string) (all []Info, err error) {
	d, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for {
		page, err := d.Readdirnames(namesAtOnce)
		for _, name := range page {
			if info, ok := parseName(name); ok {
				all = append(all, info)
			}
		}
		if errors.Is(err, io.EOF) {
			slices.SortFunc(all, newestFirst)
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Newest is the newest snapshot of dir that verifies; ErrNone when there is none, with what is wrong with the newest ones.
func Newest(ctx context.Context, dir string) (Info, error) {
	var wrong []error
	for info, err := range List(dir) {
		if err != nil {
			return Info{}, err
		}
		good, err := Verify(ctx, info.Path)
		if err == nil {
			return good, nil
		}
		if ctx.Err() != nil {
			return Info{}, err
		}
		if len(wrong) < maxWrong {
			wrong = append(wrong, err)
		}
	}
	return Info{}, errors.Join(append([]error{fmt.Errorf("%w in %s", ErrNone, dir)}, wrong...)...)
}

// maxWrong is how many bad snapshots an error names.
const maxWrong = 5
