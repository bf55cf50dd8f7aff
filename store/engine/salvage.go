package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Names in the directory of an engine.
const (
	memberDir = "member"
	// nextDir is a copy being made, deadDir what it replaces.
	nextDir = "member.next"
	deadDir = "member.dead"
)

// leaveBehind gives the directory new files with the contents of the old ones, which stay with a member that cannot be ended: whatever
// that still does, it does to files without a name.
func leaveBehind(dir string) error {
	if err := tidy(dir); err != nil {
		return err
	}
	live, next, dead := filepath.Join(dir, memberDir), filepath.Join(dir, nextDir), filepath.Join(dir, deadDir)
	if err := copyTree(next, live); err != nil {
		_ = os.RemoveAll(next)
		return fmt.Errorf("cannot copy the files of a member that would not end: %w", err)
	}
	if err := os.Rename(live, dead); err != nil {
		return err
	}
	if err := os.Rename(next, live); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), os.RemoveAll(dead))
}

// tidy ends what a crash in leaveBehind has interrupted.
func tidy(dir string) error {
	live, next, dead := filepath.Join(dir, memberDir), filepath.Join(dir, nextDir), filepath.Join(dir, deadDir)
	if _, err := os.Stat(live); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(dead); err == nil {
			if err := os.Rename(dead, live); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.RemoveAll(next), os.RemoveAll(dead), sweepRewrites(dir))
}

func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), dirMode)
		}
		return copyFile(filepath.Join(to, rel), path)
	})
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// damaged names the file of the directory that a failed boot was about, unless the boot failed for want of something else.
func damaged(dir string, err error) error {
	for _, other := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENOMEM, syscall.EACCES, syscall.EROFS, syscall.ENOTDIR, ErrLocked, ErrDamaged, errPeers, errNotAlone, ErrRemoved} {
		if errors.Is(err, other) {
			return err
		}
	}
	return damage(newestLog(dir), err)
}

func damage(path string, err error) error {
	return fmt.Errorf("%s is %w: %w", path, ErrDamaged, err)
}

// newestLog is the last segment of the log, or the directory of the member when there is none.
func newestLog(dir string) string {
	all := segments(dir)
	if len(all) == 0 {
		return filepath.Join(dir, memberDir)
	}
	return all[len(all)-1]
}

// segments are the files of the log, in their order.
func segments(dir string) []string {
	all, _ := filepath.Glob(filepath.Join(logDir(dir), "*.wal"))
	slices.Sort(all)
	return all
}

func logDir(dir string) string { return filepath.Join(dir, memberDir, "wal") }
