package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/store/snapshot"
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
	if isFile(filepath.Join(real, rememberFile)) || bornHere(real) || restoredHere(real) {
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

// restoredHere tells whether dir was made by a restore of a snapshot, and no node has run on it yet: it was locked, holds a store, and nothing
// else that no node would make.
func restoredHere(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !isOurs(e.Name()) {
			return false
		}
	}
	return err == nil && isFile(filepath.Join(dir, lockFile)) && isFile(filepath.Join(dir, StoreDir, "member", "snap", "db"))
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// made are the names of what a node makes in its data directory. What is named like one of them with an extension, such as
// store.before-restore-TIME or a file that is being written, is made by a node, too.
var made = []string{
	rememberFile, lockFile, SocketFile, KubeconfigFile, LastExitFile, versionFile, "ledger.db",
	"pki", StoreDir, snapshot.Dir, "images", "run", "pods", scratchDir,
}

func isOurs(name string) bool {
	return slices.ContainsFunc(made, func(m string) bool { return name == m || strings.HasPrefix(name, m+".") })
}

// usable refuses a directory that is not a node's and in which somebody else keeps directories, such as a home or the root of the host:
// later nobody could tell whose is what. Files may lie there, such as the node's configuration.
func usable(dir string) error {
	if isFile(filepath.Join(dir, rememberFile)) {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() && !isOurs(e.Name()) && e.Name() != "lost+found" {
			return fmt.Errorf("cannot use data directory %s: it holds %s, which no node has made; choose an empty or a new directory with --data-dir", dir, e.Name())
		}
	}
	return nil
}

// removeDataDir removes what a node has made in dir, its record last, so that what was interrupted can be repeated; and dir
// itself when nothing else is in it. It returns the name of something that is left.
func removeDataDir(dir string) (left string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, e := range entries {
		if !isOurs(e.Name()) || e.Name() == rememberFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return "", err
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, rememberFile)); err != nil {
		return "", err
	}
	err = os.Remove(dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EBUSY) {
		entries, _ = os.ReadDir(dir)
		if len(entries) > 0 {
			left = entries[0].Name()
		}
		return left, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return "", err
}
