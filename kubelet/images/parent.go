package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultDirMode is the mode of a parent directory that no layer describes.
const defaultDirMode = 0o755

// openDir is the directory members are being written to; consecutive members mostly share it.
type openDir struct {
	path string
	root *os.Root
	self *os.File // the directory as a file, for calls os.Root does not have
}

func (d *openDir) fd() int { return int(d.self.Fd()) }

func (d *openDir) join(base string) string { return path.Join(d.path, base) }

// enterParent opens the directory that a cleaned path means, creating what is missing of it.
func (u *unpacker) enterParent(name string) (*openDir, error) {
	real, err := u.realDir(name)
	if err != nil {
		return nil, err
	}
	if u.parent != nil && u.parent.path == real {
		return u.parent, nil
	}
	u.leaveParent()
	root, err := u.root.OpenRoot(dotted(real))
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	u.parent = &openDir{path: real, root: root, self: self}
	return u.parent, nil
}

func (u *unpacker) leaveParent() {
	if u.parent != nil {
		u.parent.self.Close()
		u.parent.root.Close()
		u.parent = nil
	}
}

// realDir turns a path into one whose components all are directories of this layer. Links on the way are followed inside
// the image, whether this layer has them or one below: a member "lib/x" belongs into "usr/lib" where the image says that
// lib is a link to it.
func (u *unpacker) realDir(name string) (string, error) {
	rest, cur, links := splitPath(name), "", 0
	for len(rest) > 0 {
		next := step(cur, rest[0])
		rest = rest[1:]
		target, err := u.ensureDir(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			cur = next
			continue
		}
		if links++; links > maxSymlinks {
			return "", fmt.Errorf("%w: too many links in %q", ErrCorrupt, name)
		}
		cur, rest = follow(cur, target, rest)
	}
	return cur, nil
}

// ensureDir makes sure that name, whose parent is real, is a directory of this layer; or it returns the target when the
// image has a link there.
func (u *unpacker) ensureDir(name string) (linkTarget string, err error) {
	if name == "" {
		return "", nil
	}
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.inherit(name)
	case err != nil:
		return "", err
	case info.IsDir():
		return "", nil
	case info.Mode()&fs.ModeSymlink != 0:
		return u.root.Readlink(name)
	case isWhiteout(info):
		if err := u.root.Remove(name); err != nil {
			return "", err
		}
		if err := u.makeDir(name, defaultDirMode, 0, 0); err != nil {
			return "", err
		}
		return "", u.setOpaque(name)
	}
	return "", fmt.Errorf("%w: %q is a file and a directory", ErrCorrupt, name)
}

// inherit creates a directory this layer does not describe with the mode and owner it has in the layers below.
func (u *unpacker) inherit(name string) (linkTarget string, err error) {
	u.chained = true
	below, ok := u.view.find(name)
	if ok && below.info.Mode()&fs.ModeSymlink != 0 {
		return below.root.Readlink(below.path)
	}
	if !ok || !below.info.IsDir() {
		return "", u.makeDir(name, defaultDirMode, 0, 0)
	}
	st := below.info.Sys().(*syscall.Stat_t)
	u.times[name] = below.info.ModTime()
	return "", u.makeDir(name, below.info.Mode(), int(st.Uid), int(st.Gid))
}

func (u *unpacker) makeDir(name string, mode fs.FileMode, uid, gid int) error {
	if err := u.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	if err := u.root.Lchown(name, uid, gid); err != nil {
		return err
	}
	return u.root.Chmod(name, mode.Perm()|mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

// linkTarget gives the real path in this layer of a hard link's target, copying the file up when a layer below has it.
func (u *unpacker) linkTarget(linkname string) (string, error) {
	clean, err := memberPath(linkname)
	if err != nil || clean == "" {
		return "", errors.Join(err, fmt.Errorf("%w: hard link to %q", ErrCorrupt, linkname))
	}
	dir, err := u.realDir(path.Dir(clean))
	if err != nil {
		return "", err
	}
	name := path.Join(dir, path.Base(clean))
	if info, err := u.root.Lstat(name); err == nil && !isWhiteout(info) && !info.IsDir() {
		return name, nil
	}
	below, ok := u.view.find(name)
	if !ok || !below.info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: hard link to %q, which is not there", ErrCorrupt, linkname)
	}
	return name, u.copyUp(name, below)
}

// copyUp copies a regular file of a layer below into this one.
func (u *unpacker) copyUp(name string, below entry) error {
	u.chained = true
	src, err := below.root.Open(below.path)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	u.out.w = dst
	_, err = io.CopyBuffer(&u.out, src, u.buf)
	st := below.info.Sys().(*syscall.Stat_t)
	err = errors.Join(err, dst.Chown(int(st.Uid), int(st.Gid)), dst.Chmod(below.info.Mode()),
		setFileTime(dst, below.info.ModTime()))
	return errors.Join(err, dst.Close())
}

func (u *unpacker) setOpaque(name string) error {
	f, err := u.root.Open(dotted(name))
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fsetxattr(int(f.Fd()), opaqueXattr, []byte("y"), 0)
}

// dotted writes the top directory the way os.Root wants it.
func dotted(name string) string {
	if name == "" {
		return "."
	}
	return name
}
