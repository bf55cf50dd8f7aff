package images

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSymlinks bounds the links followed for one path, as the kernel does.
const maxSymlinks = 40

// opaqueXattr on a directory hides what the layers below have in it; the kernel's overlay defines name and value.
const opaqueXattr = "trusted.overlay.opaque"

// stack is a read view of unpacked layers, top first, merged the way an overlay mount merges them.
type stack []*os.Root

// entry is the file of a stack that is visible at one path.
type entry struct {
	root *os.Root
	path string
	info fs.FileInfo
}

// openStack opens layer directories, top first. The caller closes the stack.
func openStack(dirs []string) (stack, error) {
	s := make(stack, 0, len(dirs))
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			s.close()
			return nil, err
		}
		s = append(s, root)
	}
	return s, nil
}

func (s stack) close() {
	for _, root := range s {
		root.Close()
	}
}

// find gives the visible file at a clean relative path without following any link.
func (s stack) find(name string) (entry, bool) {
	visible := s
	parts := strings.Split(name, "/")
	for i := range parts {
		top, dirs := visible.at(path.Join(parts[:i+1]...))
		if top.info == nil || (i < len(parts)-1 && !top.info.IsDir()) {
			return entry{}, false
		}
		if i == len(parts)-1 {
			return top, true
		}
		visible = dirs
	}
	return entry{}, false
}

// at looks at one path whose parents are known to be directories in every layer of the stack. It returns the visible
// entry and, if that is a directory, the layers that contribute to it.
func (s stack) at(name string) (top entry, dirs stack) {
	for _, root := range s {
		info, err := root.Lstat(name)
		if err != nil {
			continue
		}
		if isWhiteout(info) || (top.info != nil && !info.IsDir()) {
			break
		}
		if top.info == nil {
			top = entry{root: root, path: name, info: info}
		}
		if !info.IsDir() {
			break
		}
		dirs = append(dirs, root)
		if isOpaque(root, name) {
			break
		}
	}
	return top, dirs
}

// open opens the regular file at a path, following links inside the stack.
func (s stack) open(name string) (*os.File, error) {
	rest := splitPath(name)
	cur := ""
	for links := 0; len(rest) > 0; {
		next := step(cur, rest[0])
		rest = rest[1:]
		if next == "" {
			cur = next
			continue
		}
		e, ok := s.find(next)
		switch {
		case !ok:
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case e.info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxSymlinks {
				return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
			}
			target, err := e.root.Readlink(e.path)
			if err != nil {
				return nil, err
			}
			cur, rest = follow(cur, target, rest)
		case len(rest) == 0 && e.info.Mode().IsRegular():
			return e.root.Open(e.path)
		default:
			cur = next
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
}

// follow continues a walk at a link's target: from the top for an absolute one, else from the link's directory.
func follow(dir, target string, rest []string) (string, []string) {
	if path.IsAbs(target) {
		dir = ""
	}
	return dir, append(splitPath(target), rest...)
}

// step descends from dir into one path component; "" is the top, and nothing is above it.
func step(dir, component string) string {
	if component == ".." {
		return strings.TrimPrefix(path.Clean("/"+path.Dir("/"+dir)), "/")
	}
	return path.Join(dir, component)
}

// splitPath gives the components of a path without empty ones and dots.
func splitPath(name string) []string {
	parts := strings.Split(name, "/")
	kept := parts[:0]
	for _, p := range parts {
		if p != "" && p != "." {
			kept = append(kept, p)
		}
	}
	return kept
}

// isWhiteout reports whether a file is an overlay's mark for "deleted here".
func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

func isOpaque(root *os.Root, name string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(filepath.Join(root.Name(), name), opaqueXattr, value[:])
	return err == nil && n == 1 && value[0] == 'y'
}
