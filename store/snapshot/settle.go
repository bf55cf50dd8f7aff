package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/engine"
)

// markFile lies in a store that was restored until all of the restore is done. It tells the new store from the old one when they have just
// changed places.
const markFile = "RESTORED"

// places are the paths beside a store that a restore uses.
type places struct {
	building string // a store that is not whole yet
	restored string // the new store when it is whole, then the old one
	floor    string // the highest revision that a restored store has begun with
}

func placesOf(dir string) places {
	return places{building: dir + ".building", restored: dir + ".restored", floor: dir + ".revision"}
}

// Settle ends a restore of the store in dir that was interrupted: dir is then as before, or restored. It does nothing else, and nothing at all
// when there is nothing to end. Call it before the store is opened.
func Settle(dir string, o Options) error {
	at, left := placesOf(dir), false
	for _, path := range []string{at.building, at.restored, filepath.Join(dir, markFile)} {
		if _, err := os.Lstat(path); err == nil {
			left = true
		}
	}
	if !left {
		return nil
	}
	release, err := engine.Lock(dir)
	if err != nil {
		return err
	}
	defer release()
	if err := settle(dir, o.withDefaults()); err != nil {
		return fmt.Errorf("cannot end the interrupted restore of store %s: %w", dir, err)
	}
	return nil
}

// settle is Settle with the lock of dir held.
func settle(dir string, o Options) error {
	at := placesOf(dir)
	if err := os.RemoveAll(at.building); err != nil {
		return err
	}
	if _, err := os.Lstat(at.restored); errors.Is(err, os.ErrNotExist) {
		return unmark(dir)
	}
	if !marked(at.restored) {
		_, err := putAside(dir, o)
		return err
	}
	vacant, err := engine.Vacant(dir)
	if err != nil {
		return err
	}
	if !vacant {
		return os.RemoveAll(at.restored)
	}
	o.Log.Warn("a restore of the store was interrupted and is ended now", "store", dir)
	_, err = exchange(dir, o)
	return err
}

// exchange puts the new store into the place of dir, and the one that was there aside; it returns where that is.
func exchange(dir string, o Options) (string, error) {
	at := placesOf(dir)
	err := unix.Renameat2(unix.AT_FDCWD, at.restored, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return exchangeInSteps(dir, o)
	}
	if err := errors.Join(err, syncDir(filepath.Dir(dir))); err != nil {
		return "", err
	}
	o.at("exchanged")
	return putAside(dir, o)
}

// exchangeInSteps is exchange on a file system that cannot do it in one. Between the two steps there is no store, and settle ends it.
func exchangeInSteps(dir string, o Options) (string, error) {
	at := placesOf(dir)
	aside, err := moveAside(dir, dir, o)
	if err != nil {
		return "", err
	}
	o.at("moved aside")
	if err := errors.Join(os.Rename(at.restored, dir), syncDir(filepath.Dir(dir))); err != nil {
		return aside, err
	}
	o.at("moved in")
	return aside, unmark(dir)
}

// putAside gives the old store, which has changed places with the new one, its name.
func putAside(dir string, o Options) (string, error) {
	aside, err := moveAside(placesOf(dir).restored, dir, o)
	if err != nil {
		return aside, err
	}
	o.at("put aside")
	return aside, unmark(dir)
}

// moveAside gives the store that lies in path, and was that of dir, a name of its own; an empty one is removed.
func moveAside(path, dir string, o Options) (aside string, err error) {
	vacant, err := engine.Vacant(path)
	if err != nil {
		return "", err
	}
	if vacant {
		return "", os.RemoveAll(path)
	}
	aside = unused(dir + ".before-restore-" + o.Clock.Now().UTC().Format(timeLayout))
	return aside, errors.Join(os.Rename(path, aside), syncDir(filepath.Dir(dir)))
}

// unused is name, or name with a number when something has it already: two restores may end in one second.
func unused(name string) string {
	for free, n := name, 2; ; n++ {
		if _, err := os.Lstat(free); err != nil { // also a name that cannot be: the rename says why
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

func marked(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, markFile))
	return err == nil
}

// unmark says that the restore of dir is done.
func unmark(dir string) error {
	if err := os.Remove(filepath.Join(dir, markFile)); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, syncDir(dir))
	}
	return nil
}

// floor is the highest revision that a restore of dir has begun with, 0 if there was none.
func floor(dir string) int64 {
	b, err := os.ReadFile(placesOf(dir).floor)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// raiseFloor remembers revision for restores to come, whatever becomes of the store.
func raiseFloor(dir string, revision int64) error {
	path := placesOf(dir).floor
	if err := writeSynced(path+".tmp", []byte(strconv.FormatInt(revision, 10)+"\n")); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".tmp", path), syncDir(filepath.Dir(path)))
}

// writeSynced writes a small file to disk.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}
