package boltcheck

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// errNoOlder is the reason for which there is nothing to go back to.
var errNoOlder = errors.New("it has one valid meta page only")

// Older checks what the file at path was one transaction before: the tree of the older of its two meta pages. bbolt writes the pages of a
// transaction where neither of the last two trees is, so a transaction that was torn leaves the one before whole. nil says that Revert
// leads to a file that passes File.
func Older(path string) error {
	f, size, err := open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = older(f, size)
	return corrupt(err)
}

// older returns the newest meta page of a file whose older one leads to a whole tree.
func older(r io.ReaderAt, size int64) (newest meta, err error) {
	all, err := metas(r, size)
	if err != nil {
		return meta{}, err
	}
	if len(all) < 2 {
		return meta{}, errNoOlder
	}
	return all[0], tree(r, size, all[1])
}

// Revert takes the last transaction back in the file at path, which has passed Older: it clears the newer meta page, and bbolt goes on
// from the older one. The change is on disk when Revert returns.
func Revert(path string) error {
	f, size, err := open(path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	newest, err := older(f, size)
	if err != nil {
		return corrupt(err)
	}
	if _, err := f.WriteAt(make([]byte, headerSize+metaSize), newest.at); err != nil {
		return fmt.Errorf("cannot take the last transaction back: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot take the last transaction back: %w", err)
	}
	return nil
}
