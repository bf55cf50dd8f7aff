package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotANode is returned when what has to be removed is not a node's data directory.
var ErrNotANode = errors.New("not the data directory of a node")

// belongsToANode tells, without changing anything, whether a node has made dir: reset removes
// all that is in it, so that a mistyped directory must be refused before the first step.
func belongsToANode(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("cannot look at data directory %s: %w", dir, cause(err))
	}
	if real, err = filepath.Abs(real); err != nil {
		return fmt.Errorf("cannot look at data directory %s: %w", dir, err)
	}
	if real == "/" {
		return fmt.Errorf("cannot reset %s: it is the root of this host, %w", dir, ErrNotANode)
	}
	if isFile(filepath.Join(real, rememberFile)) || bornHere(real) {
		return nil
	}
	return fmt.Errorf("cannot reset %s: %w, there is no %s in it; give the directory of 'nodeactor run' with --data-dir",
		dir, ErrNotANode, rememberFile)
}

// bornHere tells whether a node that has lost its record, or never came to write one, made dir.
func bornHere(dir string) bool {
	if isFile(filepath.Join(dir, "ledger.db")) && isFile(filepath.Join(dir, "pki", "ca.crt")) {
		return true
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockFile || !e.Type().IsRegular() {
			return false
		}
	}
	return err == nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// removeDataDir removes dir, the node's record last: what was interrupted can be repeated.
func removeDataDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.Name() == rememberFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
