package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/test/registry/image"
)

// unpackInto unpacks one layer over others, the way stage does.
func unpackInto(t *testing.T, lowers []string, files ...image.File) (dir string, chained bool, err error) {
	t.Helper()
	needRoot(t)
	archive, err := image.Archive(files...)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	_, chained, err = unpack(context.Background(), bytes.NewReader(archive), dir, lowers, roomy)
	return dir, chained, err
}

func roomy() error { return nil }

func mustUnpack(t *testing.T, lowers []string, files ...image.File) (string, bool) {
	t.Helper()
	dir, chained, err := unpackInto(t, lowers, files...)
	if err != nil {
		t.Fatal(err)
	}
	return dir, chained
}

func TestOverlayShowsWhatLayersMean(t *testing.T) {
	base, _ := mustUnpack(t, nil,
		image.File{Path: "bin/"}, image.File{Path: "usr/"}, image.File{Path: "usr/lib/"},
		image.File{Path: "lib", Link: "usr/lib"}, image.File{Path: "abs", Link: "/usr/lib"},
		text("bin/tool", "one"), text("gone", "x"), image.File{Path: "hidden/"}, text("hidden/old", "x"),
		image.File{Path: "dir/"}, text("dir/old", "x"))
	top, _ := mustUnpack(t, []string{base},
		text("bin/tool", "two"), text(".wh.gone", ""), text("hidden/.wh..wh..opq", ""), text("hidden/new", "y"),
		text("lib/a", "through a link"), text("abs/b", "through an absolute link"),
		text(".wh.dir", ""), image.File{Path: "dir/"}, text("dir/new", "z"))
	got := tree(t, mountOverlay(t, []string{top, base}))
	want := `Lrwxrwxrwx abs -> /usr/lib
drwxr-xr-x bin
-rw-r--r-- bin/tool = two
drwxr-xr-x dir
-rw-r--r-- dir/new = z
drwxr-xr-x hidden
-rw-r--r-- hidden/new = y
Lrwxrwxrwx lib -> usr/lib
drwxr-xr-x usr
drwxr-xr-x usr/lib
-rw-r--r-- usr/lib/a = through a link
-rw-r--r-- usr/lib/b = through an absolute link
`
	if got != want {
		t.Errorf("overlay shows\n%s\nwant\n%s", got, want)
	}
}

// The order of a deletion mark and the file of the same name within one layer must not matter.
func TestWhiteoutBesideOwnFile(t *testing.T) {
	base, _ := mustUnpack(t, nil, image.File{Path: "d/"}, text("d/old", "x"), text("f", "old"))
	for name, files := range map[string][]image.File{
		"mark first": {text(".wh.d", ""), image.File{Path: "d/"}, text("d/new", "y"), text(".wh.f", ""), text("f", "new")},
		"mark last":  {image.File{Path: "d/"}, text("d/new", "y"), text(".wh.d", ""), text("f", "new"), text(".wh.f", "")},
		"no parent":  {text(".wh.d", ""), text("d/new", "y"), text("f", "new")},
	} {
		t.Run(name, func(t *testing.T) {
			top, _ := mustUnpack(t, []string{base}, files...)
			got := tree(t, mountOverlay(t, []string{top, base}))
			want := "drwxr-xr-x d\n-rw-r--r-- d/new = y\n-rw-r--r-- f = new\n"
			if got != want {
				t.Errorf("overlay shows\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	capability := string([]byte{0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	dir, _ := mustUnpack(t, nil,
		image.File{Path: "su", Content: []byte("x"), Mode: 0o4755, UID: 7, GID: 8},
		image.File{Path: "ping", Content: []byte("x"), Mode: 0o755, Xattrs: map[string]string{
			"security.capability": capability, "trusted.overlay.redirect": "/etc", "user.overlay.opaque": "y"}},
		image.File{Path: "tmp/", Mode: 0o1777},
		image.File{Path: "hard", Link: "su", Type: tar.TypeLink},
		image.File{Path: "pipe", Type: tar.TypeFifo, Mode: 0o600},
		image.File{Path: "null", Type: tar.TypeChar}, image.File{Path: "sda", Type: tar.TypeBlock})
	su := lstat(t, dir, "su")
	st := su.Sys().(*syscall.Stat_t)
	if su.Mode() != 0o755|os.ModeSetuid || st.Uid != 7 || st.Gid != 8 || st.Nlink != 2 {
		t.Errorf("su: mode %v owner %d:%d links %d", su.Mode(), st.Uid, st.Gid, st.Nlink)
	}
	if su.ModTime().Year() != 2025 || lstat(t, dir, "tmp").ModTime().Year() != 2025 {
		t.Errorf("times: file %v, directory %v, want 2025", su.ModTime(), lstat(t, dir, "tmp").ModTime())
	}
	if mode := lstat(t, dir, "tmp").Mode(); mode&os.ModeSticky == 0 {
		t.Errorf("tmp has mode %v, want sticky", mode)
	}
	if mode := lstat(t, dir, "pipe").Mode(); mode&os.ModeNamedPipe == 0 {
		t.Errorf("pipe has mode %v", mode)
	}
	for _, name := range []string{"null", "sda"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("device %s was unpacked", name)
		}
	}
	if got := xattr(dir, "ping", "security.capability"); got != capability {
		t.Errorf("capability is %q", got)
	}
	if got := xattr(dir, "ping", "trusted.overlay.redirect") + xattr(dir, "ping", "user.overlay.opaque"); got != "" {
		t.Errorf("an image set an attribute of the overlay: %q", got)
	}
}

func lstat(t *testing.T, dir, name string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func xattr(dir, name, attr string) string {
	buf := make([]byte, 64)
	n, err := unix.Lgetxattr(filepath.Join(dir, name), attr, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

func TestMissingParentsTakeAttributesFromBelow(t *testing.T) {
	base, chained := mustUnpack(t, nil, image.File{Path: "a/", Mode: 0o750, UID: 5, GID: 6}, text("a/deep", "x"))
	if chained {
		t.Error("a layer with all its directories counts as depending on others")
	}
	top, chained := mustUnpack(t, []string{base}, text("a/new", "y"), text("b/c/new", "z"))
	a := lstat(t, top, "a")
	if st := a.Sys().(*syscall.Stat_t); a.Mode().Perm() != 0o750 || st.Uid != 5 || st.Gid != 6 || !chained {
		t.Errorf("a: mode %v owner %d:%d, depends on below: %v", a.Mode(), st.Uid, st.Gid, chained)
	}
	if c := lstat(t, top, "b/c"); c.Mode().Perm() != 0o755 {
		t.Errorf("b/c: mode %v, want 0755", c.Mode())
	}
}

func TestHardLinkToLayerBelowIsCopied(t *testing.T) {
	base, _ := mustUnpack(t, nil, image.File{Path: "f", Content: []byte("content"), Mode: 0o4711, UID: 3})
	top, chained := mustUnpack(t, []string{base}, image.File{Path: "l", Link: "f", Type: tar.TypeLink})
	l := lstat(t, top, "l")
	if content, _ := os.ReadFile(filepath.Join(top, "l")); string(content) != "content" || !chained {
		t.Errorf("l holds %q, depends on below: %v", content, chained)
	}
	if st := l.Sys().(*syscall.Stat_t); l.Mode() != 0o711|os.ModeSetuid || st.Uid != 3 || st.Nlink != 2 {
		t.Errorf("l: mode %v owner %d links %d", l.Mode(), st.Uid, st.Nlink)
	}
}

// Archives made by tar begin with the top directory itself and "./" before each name.
func TestDottedNames(t *testing.T) {
	dir, _ := mustUnpack(t, nil, image.File{Path: "./", Mode: 0o750, UID: 4}, image.File{Path: "./d/"}, text("./d//f", "x"))
	top := lstat(t, dir, ".")
	if st := top.Sys().(*syscall.Stat_t); top.Mode().Perm() != 0o750 || st.Uid != 4 || top.ModTime().Year() != 2025 {
		t.Errorf("top: mode %v owner %d time %v", top.Mode(), st.Uid, top.ModTime())
	}
	if got := tree(t, dir); got != "drwxr-xr-x d\n-rw-r--r-- d/f = x\n" {
		t.Errorf("unpacked\n%s", got)
	}
}

// A later member of a layer replaces an earlier one of the same name, whatever the two are.
func TestLaterMemberWins(t *testing.T) {
	dir, _ := mustUnpack(t, nil,
		text("x", "first"), text("x", "second"),
		image.File{Path: "d/"}, text("d/inner", "1"), text("d", "now a file"),
		text("e", "file"), image.File{Path: "e/"}, text("e/inner", "2"),
		image.File{Path: "s", Link: "x"}, text("s", "no link any more"))
	want := "-rw-r--r-- d = now a file\ndrwxr-xr-x e\n-rw-r--r-- e/inner = 2\n-rw-r--r-- s = no link any more\n-rw-r--r-- x = second\n"
	if got := tree(t, dir); got != want {
		t.Errorf("unpacked\n%s\nwant\n%s", got, want)
	}
}

func TestNothingIsWrittenOutsideTheLayer(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("intact"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]image.File{
		"absolute name":         {text(outside+"/victim", "owned")},
		"link then through it":  {image.File{Path: "l", Link: outside}, text("l/victim", "owned")},
		"link up then through":  {image.File{Path: "l", Link: strings.Repeat("../", 20) + outside[1:]}, text("l/victim", "owned")},
		"file over link":        {image.File{Path: "l", Link: victim}, text("l", "owned")},
		"whiteout through link": {image.File{Path: "l", Link: outside}, text("l/.wh.victim", "")},
		"opaque through link":   {image.File{Path: "l", Link: outside}, text("l/.wh..wh..opq", "")},
		"hard link through":     {image.File{Path: "l", Link: outside}, image.File{Path: "h", Link: "l/victim", Type: tar.TypeLink}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpackInto(t, nil, files...)
			if content, readErr := os.ReadFile(victim); string(content) != "intact" {
				t.Fatalf("victim holds %q (%v) after unpack said %v", content, readErr, err)
			}
			if entries, _ := os.ReadDir(outside); len(entries) != 1 || isOpaqueDir(outside) {
				t.Fatalf("outside changed: %v", entries)
			}
		})
	}
}

func isOpaqueDir(dir string) bool { return xattr(dir, ".", opaqueXattr) != "" }

func TestHostileMembersAreRefused(t *testing.T) {
	for name, files := range map[string][]image.File{
		"up":             {text("../victim", "owned")},
		"up inside":      {text("a/../../victim", "owned")},
		"hard link up":   {image.File{Path: "h", Link: "../../etc/passwd", Type: tar.TypeLink}},
		"link loop":      {image.File{Path: "l", Link: "l"}, text("l/x", "")},
		"file as dir":    {text("f", ""), text("f/x", "")},
		"empty whiteout": {text(".wh.", "")},
		"top is a file":  {image.File{Path: ".", Content: []byte("x")}},
		"dot whiteout":   {text("d/.wh...", "")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := unpackInto(t, nil, files...); !errors.Is(err, ErrCorrupt) {
				t.Errorf("unpack says %v, want ErrCorrupt", err)
			}
		})
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	archive, _ := image.Archive(text("a", "x"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := unpack(ctx, bytes.NewReader(archive), t.TempDir(), nil, roomy)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("unpack says %v, want context.Canceled", err)
	}
}
