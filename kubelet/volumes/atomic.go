package volumes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names and modes of an atomically switched directory. Readers and tools know the names from other kubelets.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	stampLayout = "..2006_01_02_15_04_05."
	dirMode     = 0o755
	// groupRead and groupDir are added to files and directories when the pod has an fsGroup.
	groupRead = 0o440
	groupDir  = 0o550
)

// file is one file of a volume's content.
type file struct {
	data []byte
	mode fs.FileMode
	uid  int // owner; 0 is root
}

// payload is a volume's content by relative path.
type payload map[string]file

// publish makes dir show exactly content. Nothing is written when it does already. gid is the files' group, or -1.
func publish(dir string, content payload, gid int, now time.Time) error {
	for p := range content {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	current, _ := os.Readlink(filepath.Join(dir, dataLink))
	if current != "" && same(filepath.Join(dir, current), content) {
		return nil
	}
	fresh, err := os.MkdirTemp(dir, now.UTC().Format(stampLayout))
	if err != nil {
		return err
	}
	if err := fill(fresh, content, gid); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := switchTo(dir, filepath.Base(fresh)); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := link(dir, content); err != nil {
		return err
	}
	return sweep(dir, filepath.Base(fresh), content)
}

// checkPath refuses paths that would leave the volume or shadow its own links.
func checkPath(p string) error {
	if p == "" || p == "." || path.IsAbs(p) || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "..") || strings.Contains(p, "/../") {
		return fmt.Errorf("cannot write file %q: not a path inside the volume", p)
	}
	return nil
}

func fill(dir string, content payload, gid int) error {
	if err := own(dir, dirMode, 0, gid); err != nil {
		return err
	}
	for p, f := range content {
		full := filepath.Join(dir, p)
		if err := mkdirs(dir, filepath.Dir(full), gid); err != nil {
			return err
		}
		if err := os.WriteFile(full, f.data, 0o600); err != nil {
			return err
		}
		mode := f.mode
		if gid >= 0 {
			mode |= groupRead
		}
		if err := own(full, mode, f.uid, gid); err != nil {
			return err
		}
	}
	return nil
}

func mkdirs(root, dir string, gid int) error {
	if len(dir) <= len(root) {
		return nil
	}
	if err := mkdirs(root, filepath.Dir(dir), gid); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return own(dir, dirMode, 0, gid)
}

// own sets mode and owner; directories of a group hand it on to what is created in them.
func own(p string, mode fs.FileMode, uid, gid int) error {
	if gid >= 0 || uid > 0 {
		if err := os.Lchown(p, uid, gid); err != nil {
			return err
		}
	}
	info, err := os.Lstat(p)
	if err != nil {
		return err
	}
	if info.IsDir() && gid >= 0 {
		mode |= groupDir | fs.ModeSetgid
	}
	return os.Chmod(p, mode)
}

// switchTo points the data link at fresh in one step.
func switchTo(dir, fresh string) error {
	tmp := filepath.Join(dir, newDataLink)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(fresh, tmp); err != nil {
		return err
	}
	return unix.Rename(tmp, filepath.Join(dir, dataLink))
}

// link makes the names users see: links through the data link.
func link(dir string, content payload) error {
	for p := range content {
		top, _, _ := strings.Cut(p, "/")
		err := os.Symlink(filepath.Join(dataLink, top), filepath.Join(dir, top))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// sweep removes links and generations that are not of the present content.
func sweep(dir, fresh string, content payload) error {
	keep := map[string]bool{dataLink: true, fresh: true}
	for p := range content {
		top, _, _ := strings.Cut(p, "/")
		keep[top] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// same tells whether dir holds content and nothing else.
func same(dir string, content payload) bool {
	n := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		f, ok := content[rel]
		if !ok {
			return fs.ErrNotExist
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&^groupRead != f.mode.Perm()&^groupRead {
			return fs.ErrInvalid
		}
		have, err := os.ReadFile(p)
		if err != nil || !bytes.Equal(have, f.data) {
			return fs.ErrInvalid
		}
		n++
		return nil
	})
	return err == nil && n == len(content)
}

// published tells whether dir shows an earlier content.
func published(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, dataLink))
	return err == nil
}
