package images

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	whiteoutPrefix = ".wh."         // .wh.NAME deletes NAME of the layers below
	whiteoutMeta   = ".wh..wh."     // names under this belong to the archive format, not to the image
	whiteoutOpaque = ".wh..wh..opq" // hides all the layers below have in this directory
	xattrPrefix    = "SCHILY.xattr."
)

// whiteout turns an archive's deletion marks into the ones an overlay mount understands.
func (u *unpacker) whiteout(dir *openDir, base string) error {
	if base == whiteoutOpaque {
		return u.setOpaque(dir.path)
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return ErrCorrupt
	}
	info, err := dir.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		// The layer deletes the directory below and brings its own.
		return u.setOpaque(dir.join(name))
	case err == nil:
		// The layer's own file hides the one below anyway.
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return unix.Mknodat(dir.fd(), name, unix.S_IFCHR, 0)
	}
	return err
}

// setAttributes gives an open file or directory the owner, mode and extended attributes of its header, in the order in
// which none undoes another: chown clears setuid bits and file capabilities.
func setAttributes(f *os.File, h *tar.Header) error {
	if err := f.Chown(h.Uid, h.Gid); err != nil {
		return err
	}
	if err := f.Chmod(fileMode(h)); err != nil {
		return err
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrPrefix)
		if !ok || !allowedXattr(name) {
			continue
		}
		err := unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return &fs.PathError{Op: "setxattr " + name, Path: h.Name, Err: err}
		}
	}
	return nil
}

// allowedXattr admits file capabilities and user attributes. An image must not set those that steer the overlay itself
// or the host's security modules.
func allowedXattr(name string) bool {
	return name == "security.capability" ||
		strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

func fileMode(h *tar.Header) fs.FileMode {
	return h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

func setFileTime(f *os.File, t time.Time) error {
	ts := timespecs(t)
	tv := []unix.Timeval{{Sec: ts[0].Sec, Usec: ts[0].Nsec / 1000}, {Sec: ts[1].Sec, Usec: ts[1].Nsec / 1000}}
	return unix.Futimes(int(f.Fd()), tv)
}

// timespecs gives access and modification time for the system calls; an archive has one time for both.
func timespecs(t time.Time) []unix.Timespec {
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	ts := unix.NsecToTimespec(t.UnixNano())
	return []unix.Timespec{ts, ts}
}
