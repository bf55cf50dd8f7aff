package images

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unpacker writes the members of one layer archive into a directory, in the form an overlay mount expects. Every path is
// first turned into a path of real directories of this layer (parent.go), so no link of an image can lead a write
// elsewhere; os.Root refuses what would still escape.
type unpacker struct {
	root    *os.Root
	view    stack // the layer itself, then the layers below, top first
	parent  *openDir
	times   map[string]time.Time // directories get theirs last: filling a directory changes it
	chained bool                 // the result depends on the layers below
	out     roomyWriter          // writes to the file at hand and counts all of them
	buf     []byte
}

// unpack fills the empty directory dest from an uncompressed layer archive. lowers are the directories of the layers
// below, top first; room is asked now and then whether more may be written. It returns the bytes of all files, and
// whether the layers below influenced the result.
func unpack(ctx context.Context, archive io.Reader, dest string, lowers []string, room func() error) (size int64, chained bool, err error) {
	view, err := openStack(append([]string{dest}, lowers...))
	if err != nil {
		return 0, false, err
	}
	defer view.close()
	u := &unpacker{root: view[0], view: view, times: map[string]time.Time{}, out: roomyWriter{room: room}, buf: make([]byte, copyBufferSize)}
	defer u.leaveParent()
	if err := u.members(ctx, tar.NewReader(archive)); err != nil {
		return 0, false, err
	}
	return u.out.n, u.chained, u.finishTimes()
}

func (u *unpacker) members(ctx context.Context, tr *tar.Reader) error {
	for n := 0; ; n++ {
		h, err := tr.Next()
		switch {
		case err == io.EOF:
			return ctx.Err()
		case err != nil:
			return archiveError(ctx, err)
		case n >= maxLayerEntries:
			return fmt.Errorf("%w: layer has more than %d files", ErrCorrupt, maxLayerEntries)
		}
		if err := u.member(h, tr); err != nil {
			return fmt.Errorf("cannot unpack %q: %w", h.Name, archiveError(ctx, err))
		}
	}
}

// archiveError tells a broken archive from an ended context and from a failing disk.
func archiveError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var deflate flate.CorruptInputError
	for _, broken := range []error{tar.ErrHeader, io.ErrUnexpectedEOF, gzip.ErrHeader, gzip.ErrChecksum} {
		if errors.Is(err, broken) || errors.As(err, &deflate) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return spaceError(err)
}

func (u *unpacker) member(h *tar.Header, content io.Reader) error {
	name, err := memberPath(h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		return u.top(h)
	}
	dir, err := u.enterParent(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(dir, base)
	}
	return u.create(dir, base, h, content)
}

// memberPath cleans the name of an archive member; "" is the layer's top directory.
func memberPath(name string) (string, error) {
	parts := splitPath(name)
	for _, p := range parts {
		if p == ".." {
			return "", fmt.Errorf("%w: path leaves the layer", ErrCorrupt)
		}
	}
	return path.Join(parts...), nil
}

func (u *unpacker) top(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return fmt.Errorf("%w: the top of a layer is not a directory", ErrCorrupt)
	}
	u.times["."] = h.ModTime
	f, err := u.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return setAttributes(f, h)
}

func (u *unpacker) create(dir *openDir, base string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.directory(dir, base, h)
	case tar.TypeReg:
		return u.file(dir, base, h, content)
	case tar.TypeSymlink:
		return u.symlink(dir, base, h)
	case tar.TypeLink:
		return u.hardlink(dir, base, h)
	case tar.TypeFifo:
		return u.fifo(dir, base, h)
	}
	// Device nodes are left out: a container's devices come from its spec, never from its image. What other types a
	// layer may hold (global headers, vendor extensions) carries no file.
	return nil
}

func (u *unpacker) directory(dir *openDir, base string, h *tar.Header) error {
	name := dir.join(base)
	info, err := dir.root.Lstat(base)
	if err != nil || !info.IsDir() {
		opaque := err == nil && isWhiteout(info)
		if err := replaceWith(dir, base, func() error { return dir.root.Mkdir(base, 0o700) }); err != nil {
			return err
		}
		if opaque {
			if err := u.setOpaque(name); err != nil {
				return err
			}
		}
	}
	u.times[name] = h.ModTime
	f, err := dir.root.Open(base)
	if err != nil {
		return err
	}
	defer f.Close()
	return setAttributes(f, h)
}

func (u *unpacker) file(dir *openDir, base string, h *tar.Header, content io.Reader) error {
	var f *os.File
	err := replaceWith(dir, base, func() (err error) {
		f, err = dir.root.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	u.out.w = f
	_, err = io.CopyBuffer(&u.out, content, u.buf)
	if err == nil {
		err = setAttributes(f, h)
	}
	if err == nil {
		err = setFileTime(f, h.ModTime)
	}
	return errors.Join(err, f.Close())
}

func (u *unpacker) symlink(dir *openDir, base string, h *tar.Header) error {
	err := replaceWith(dir, base, func() error { return dir.root.Symlink(h.Linkname, base) })
	if err != nil {
		return err
	}
	if err := dir.root.Lchown(base, h.Uid, h.Gid); err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir.fd(), base, timespecs(h.ModTime), unix.AT_SYMLINK_NOFOLLOW)
}

// hardlink links to a file of this layer, or to a copy of it when only a layer below has it.
func (u *unpacker) hardlink(dir *openDir, base string, h *tar.Header) error {
	target, err := u.linkTarget(h.Linkname)
	if err != nil {
		return err
	}
	name := dir.join(base)
	if target == name {
		return nil
	}
	return replaceWith(dir, base, func() error { return u.root.Link(target, name) })
}

func (u *unpacker) fifo(dir *openDir, base string, h *tar.Header) error {
	err := replaceWith(dir, base, func() error {
		return unix.Mknodat(dir.fd(), base, unix.S_IFIFO|0o600, 0)
	})
	if err != nil {
		return err
	}
	if err := dir.root.Lchown(base, h.Uid, h.Gid); err != nil {
		return err
	}
	return dir.root.Chmod(base, fileMode(h))
}

// replaceWith makes a file; when one of that name is in the way it is removed first, as later members win.
func replaceWith(dir *openDir, base string, make func() error) error {
	err := make()
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := dir.root.RemoveAll(base); err != nil {
		return err
	}
	return make()
}

// finishTimes sets the times of directories, now that nothing is written to them any more.
func (u *unpacker) finishTimes() error {
	for name, t := range u.times {
		err := u.root.Chtimes(name, t, t)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
	}
	return nil
}
