package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodeactor/nodeactor/test/registry"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

func TestNormalize(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for in, want := range map[string]string{
		"nginx":                            "docker.io/library/nginx:latest",
		"nginx:1.27":                       "docker.io/library/nginx:1.27",
		"user/app":                         "docker.io/user/app:latest",
		"localhost:5000/app":               "localhost:5000/app:latest",
		"registry.example/a/b:v1":          "registry.example/a/b:v1",
		"nginx@" + digest:                  "docker.io/library/nginx@" + digest,
		"nginx:1.27@" + digest:             "docker.io/library/nginx@" + digest,
		"Nginx":                            "",
		"a b":                              "",
		"UPPER/x":                          "",
		"nginx:":                           "",
		"nginx@sha256:abc":                 "",
		strings.Repeat("a", 300):           "",
		"":                                 "",
		"-x":                               "",
		"registry.example//a":              "",
		digest[len("sha256:"):]:            "",
		"registry.example:port/a":          "",
		"index.docker.io/library/nginx:v1": "docker.io/library/nginx:v1",
	} {
		got, err := Normalize(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Normalize(%q) = %q, %v, want %q", in, got, err, want)
		}
		if err != nil && !errors.Is(err, ErrInvalidReference) {
			t.Errorf("Normalize(%q) says %v, want ErrInvalidReference", in, err)
		}
	}
}

func TestCommand(t *testing.T) {
	c := Config{Entrypoint: []string{"e"}, Cmd: []string{"c"}}
	for _, test := range []struct {
		command, args []string
		want          string
	}{
		{nil, nil, "e c"}, {[]string{"x"}, nil, "x"}, {nil, []string{"a"}, "e a"}, {[]string{"x"}, []string{"a"}, "x a"},
	} {
		if got := strings.Join(c.Command(test.command, test.args), " "); got != test.want {
			t.Errorf("command %v args %v run %q, want %q", test.command, test.args, got, test.want)
		}
	}
}

func TestReopenKeepsImagesAndSweepsLeftovers(t *testing.T) {
	r, l, dir := registry.Start(t), &memoryLedger{}, t.TempDir()
	s := openAt(t, dir, l)
	img := mustPull(t, s, r.PushSpec("a:v1", spec([]image.File{text("f", "x")})))
	other := mustPull(t, s, r.PushSpec("b:v1", spec([]image.File{text("g", "y")})))
	leftover := filepath.Join(s.tmp(), "layer-1", "fs")
	if err := os.MkdirAll(leftover, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(other.Layers[0])); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir, l)
	if got, ok := s.Lookup(img.Ref); !ok || got.Layers[0] != img.Layers[0] || got.Size != img.Size {
		t.Errorf("after reopen the image is %+v, want %+v", got, img)
	}
	if _, ok := s.Lookup(other.Ref); ok {
		t.Error("an image whose layer is gone is still there")
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("leftover is still there (%v)", err)
	}
	if again := mustPull(t, s, other.Ref); len(tree(t, again.Layers[0])) == 0 {
		t.Error("the image pulled again is empty")
	}
}

func TestLayersSettleInTheBackground(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	s.settleDelay = time.Millisecond
	img := mustPull(t, s, r.PushSpec("a:v1", spec([]image.File{text("f", "x")}, []image.File{text("g", "y")})))
	for _, layer := range img.Layers {
		mark := filepath.Join(filepath.Dir(layer), unsettledFile)
		waitFor(t, func() bool { _, err := os.Stat(mark); return os.IsNotExist(err) })
	}
}

// What a boot wrote and did not settle is trusted while that boot lasts, and not after it.
func TestUnsettledLayersAfterARestartAndAfterAPowerCut(t *testing.T) {
	r, l, dir := registry.Start(t), &memoryLedger{}, t.TempDir()
	s := openAt(t, dir, l)
	img := mustPull(t, s, r.PushSpec("a:v1", spec([]image.File{text("f", "x")})))
	s.Close()
	s = openAt(t, dir, l)
	if _, ok := s.Lookup(img.Ref); !ok || len(s.unsettledNames()) != 1 {
		t.Errorf("after a restart the image is there: %v, unsettled are %v", ok, s.unsettledNames())
	}
	s.Close()
	mark := filepath.Join(filepath.Dir(img.Layers[0]), unsettledFile)
	if err := os.WriteFile(mark, []byte("another boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir, l)
	if _, ok := s.Lookup(img.Ref); ok {
		t.Error("after a power cut an image that may be torn is still there")
	}
	storeIsEmpty(t, s)
	mustPull(t, s, img.Ref)
}

// A layer directory that lost its description, as no crash of ours leaves it, is replaced and never used.
func TestDamagedLayerDirectoryIsReplaced(t *testing.T) {
	r, l, dir := registry.Start(t), &memoryLedger{}, t.TempDir()
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	img := mustPull(t, openAt(t, dir, l), ref)
	if err := os.Remove(filepath.Join(filepath.Dir(img.Layers[0]), layerMetaFin)); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dir, l)
	if _, ok := s.Lookup(ref); ok {
		t.Error("an image with a damaged layer is still there")
	}
	if got := tree(t, mustPull(t, s, ref).Layers[0]); got != "-rw-r--r-- f = x\n" {
		t.Errorf("layer holds %q", got)
	}
	if leftover, _ := os.ReadDir(s.tmp()); len(leftover) > 0 {
		t.Errorf("left %v", leftover)
	}
}

func TestGCDeletesWhatNobodyNamesOrUses(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	base := []image.File{text("base", "x")}
	a := mustPull(t, s, r.PushSpec("a:v1", spec(base, []image.File{text("a", "123")})))
	b := mustPull(t, s, r.PushSpec("b:v1", spec(base, []image.File{text("b", "2")})))
	nobody := func(string) bool { return false }
	if freed, err := s.GC(context.Background(), nobody); freed != 0 || err != nil {
		t.Errorf("GC of a store in use frees %d, %v", freed, err)
	}
	if err := s.Remove(a.Ref); err != nil {
		t.Fatal(err)
	}
	inUse := func(dir string) bool { return dir == a.Layers[0] }
	if freed, err := s.GC(context.Background(), inUse); freed != 0 || err != nil {
		t.Errorf("GC frees %d of a running container, %v", freed, err)
	}
	if freed, err := s.GC(context.Background(), nobody); freed != 3 || err != nil {
		t.Errorf("GC frees %d, %v, want 3", freed, err)
	}
	if _, err := os.Stat(a.Layers[0]); !os.IsNotExist(err) {
		t.Errorf("the layer is still there (%v)", err)
	}
	mountOverlay(t, b.Layers)
	if err := errors.Join(s.Remove(a.Ref), s.Remove(b.Ref)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(context.Background(), nobody); err != nil {
		t.Fatal(err)
	}
	storeIsEmpty(t, s)
}

func TestFailingLedgerLeavesNoImage(t *testing.T) {
	needRoot(t)
	r, l := registry.Start(t), &memoryLedger{}
	s := openAt(t, t.TempDir(), l)
	l.fail = errors.New("disk on fire")
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	if _, err := s.Pull(context.Background(), ref, PullOptions{}); !errors.Is(err, l.fail) {
		t.Errorf("pull says %v", err)
	}
	if _, ok := s.Lookup(ref); ok {
		t.Error("the image is there without a record")
	}
	l.fail = nil
	mustPull(t, s, ref)
}

func smallDisk(t *testing.T, size string) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestFullDisk(t *testing.T) {
	r := registry.Start(t)
	big := r.PushSpec("big:v1", spec([]image.File{{Path: "zeros", Content: make([]byte, 6<<20)}}))
	archive := filepath.Join(t.TempDir(), "big.tar")
	img := registry.Build(t, spec([]image.File{{Path: "zeros", Content: make([]byte, 6<<20)}}))
	if err := image.WriteDockerArchive(archive, map[string]registry.Image{"nodeactor.io/big:v1": img}); err != nil {
		t.Fatal(err)
	}
	for name, reserve := range map[string]uint64{"found out beforehand": spaceReserve, "found out on the way": 0} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, smallDisk(t, "4m"), &memoryLedger{})
			s.reserve = reserve
			_, pullErr := s.Pull(context.Background(), big, PullOptions{})
			if !errors.Is(pullErr, ErrNoSpace) {
				t.Errorf("pull says %v, want ErrNoSpace", pullErr)
			}
			if _, err := s.ImportFile(context.Background(), archive); reserve == 0 && !errors.Is(err, ErrNoSpace) {
				t.Errorf("import says %v, want ErrNoSpace", err)
			}
			s.reserve = 0
			mustPull(t, s, r.PushSpec("small:v1", spec([]image.File{text("f", "x")})))
		})
	}
}

// A small archive of huge files must not fill the disk beyond the reserve.
func TestBombStopsAtTheReserve(t *testing.T) {
	r := registry.Start(t)
	disk := smallDisk(t, "24m")
	s := openAt(t, disk, &memoryLedger{})
	s.reserve = 12 << 20
	bomb := r.PushSpec("bomb:v1", spec([]image.File{{Path: "zeros", Content: make([]byte, 24<<20)}}))
	if _, err := s.Pull(context.Background(), bomb, PullOptions{}); !errors.Is(err, ErrNoSpace) || errors.Is(err, unix.ENOSPC) {
		t.Errorf("pull says %v, want ErrNoSpace before the disk is full", err)
	}
	storeIsEmpty(t, s)
}

func TestResolveUser(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	img := mustPull(t, s, r.PushSpec("a:v1", spec(
		[]image.File{
			{Path: "etc/"}, text("etc/passwd", "root:x:0:0::/root:/\nold:x:9:9::/:/\n"),
			text("etc/group", "root:x:0:\nstaff:x:50:ann,bob\nwheel:x:60:ann\n"),
		},
		[]image.File{
			{Path: "usr/"}, text("usr/passwd", "root:x:0:0::/root:/\nann:x:1000:1001::/home/ann:/\n"),
			{Path: "etc/passwd", Link: "/usr/passwd"},
		})))
	for _, test := range []struct {
		spec     string
		uid, gid int
		groups   string
		home     string
		bad      bool
	}{
		{spec: "", home: "/root"}, {spec: "ann", uid: 1000, gid: 1001, groups: "50 60", home: "/home/ann"},
		{spec: "1000", uid: 1000, gid: 1001, groups: "50 60", home: "/home/ann"},
		{spec: "ann:staff", uid: 1000, gid: 50, home: "/home/ann"}, {spec: "4242:4343", uid: 4242, gid: 4343, home: "/"},
		{spec: "4242", uid: 4242, home: "/"}, {spec: "old", bad: true, home: "/"}, {spec: "ann:nobody", bad: true, home: "/"},
	} {
		uid, gid, groups, err := ResolveUser(img, test.spec)
		if (err != nil) != test.bad || uid != test.uid || gid != test.gid {
			t.Errorf("user %q is %d:%d, %v, want %d:%d", test.spec, uid, gid, err, test.uid, test.gid)
		}
		if got := joinInts(groups); got != test.groups {
			t.Errorf("user %q has groups %q, want %q", test.spec, got, test.groups)
		}
		if home := HomeDir(img, test.spec); home != test.home {
			t.Errorf("user %q lives in %q, want %q", test.spec, home, test.home)
		}
	}
}

func TestResolveUserWithoutFiles(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	img := mustPull(t, s, r.PushSpec("a:v1", spec([]image.File{text("run", "x")})))
	if uid, gid, _, err := ResolveUser(img, "7:8"); uid != 7 || gid != 8 || err != nil {
		t.Errorf("user 7:8 is %d:%d, %v", uid, gid, err)
	}
	if _, _, _, err := ResolveUser(img, "ann"); err == nil {
		t.Error("a name was resolved without /etc/passwd")
	}
}
