package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/nodeactor/nodeactor/test/registry"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

func twoImages(t *testing.T) map[string]v1.Image {
	base := []image.File{text("base", "x"), {Path: "etc/"}}
	return map[string]v1.Image{
		"nodeactor.io/one:v1": registry.Build(t, spec(base, []image.File{text("one", strings.Repeat("1", 5000))})),
		"nodeactor.io/two:v1": registry.Build(t, spec(base, []image.File{text("two", "2")})),
	}
}

// archives writes the two images in every format Import reads.
func archives(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{}
	for format, write := range map[string]func(string, map[string]v1.Image) error{
		"docker": image.WriteDockerArchive, "oci": image.WriteOCIArchive,
	} {
		paths[format] = filepath.Join(dir, format+".tar")
		if err := write(paths[format], twoImages(t)); err != nil {
			t.Fatal(err)
		}
		paths[format+".gz"] = paths[format] + ".gz"
		raw, err := os.ReadFile(paths[format])
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, paths[format+".gz"], zipped(raw))
	}
	return paths
}

func zipped(raw []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(raw)
	z.Close()
	return buf.Bytes()
}

func writeFile(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestImportFormats(t *testing.T) {
	for format, path := range archives(t) {
		t.Run(format, func(t *testing.T) {
			s := openTest(t)
			refs, err := s.ImportFile(context.Background(), path)
			slices.Sort(refs)
			if err != nil || !slices.Equal(refs, []string{"nodeactor.io/one:v1", "nodeactor.io/two:v1"}) {
				t.Fatalf("import gives %v, %v", refs, err)
			}
			two, err := s.Require("nodeactor.io/two:v1")
			if err != nil || two.Config.Entrypoint[0] != "/run" {
				t.Fatalf("image is %+v (%v)", two, err)
			}
			want := "-rw-r--r-- base = x\ndrwxr-xr-x etc\n-rw-r--r-- two = 2\n"
			if got := tree(t, mountOverlay(t, two.Layers)); got != want {
				t.Errorf("image shows\n%s\nwant\n%s", got, want)
			}
			if leftover, _ := os.ReadDir(s.tmp()); len(leftover) > 0 {
				t.Errorf("import left %v", leftover)
			}
		})
	}
}

// writeIndexArchive writes an OCI archive whose one name leads to images of several platforms, and to a statement about
// them that is no image, as builders leave it.
func writeIndexArchive(t *testing.T, path, ref string, platforms ...string) {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, arch := range platforms {
		one := spec([]image.File{text("arch", arch)})
		one.Architecture = arch
		system := "linux"
		if arch == "unknown" {
			system = arch
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: registry.Build(t, one),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: arch}}})
	}
	dir := t.TempDir()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendIndex(index, layout.WithAnnotations(map[string]string{containerdNameAnnotation: ref})); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestImportOfSeveralPlatforms(t *testing.T) {
	s, path := openTest(t), filepath.Join(t.TempDir(), "multi.tar")
	writeIndexArchive(t, path, "nodeactor.io/multi:v1", "unknown", "s390x", platform.Architecture)
	refs, err := s.ImportFile(context.Background(), path)
	if err != nil || !slices.Equal(refs, []string{"nodeactor.io/multi:v1"}) {
		t.Fatalf("import gives %v, %v", refs, err)
	}
	img, _ := s.Lookup(refs[0])
	if got := tree(t, img.Layers[0]); got != "-rw-r--r-- arch = "+platform.Architecture+"\n" {
		t.Errorf("image holds %q", got)
	}
	writeIndexArchive(t, path, "nodeactor.io/alien:v1", "s390x")
	if _, err := s.ImportFile(context.Background(), path); !errors.Is(err, ErrPlatform) {
		t.Errorf("import without this platform says %v", err)
	}
}

func TestImportedImageIDs(t *testing.T) {
	s := openTest(t)
	if _, err := s.ImportFile(context.Background(), archives(t)["docker"]); err != nil {
		t.Fatal(err)
	}
	one, _ := s.Lookup("nodeactor.io/one:v1")
	if one.ImageID() != one.ID || !strings.HasPrefix(one.ID, "sha256:") {
		t.Errorf("image ID is %q", one.ImageID())
	}
}

// However an archive is damaged, Import either refuses it and keeps nothing, or has read exactly what was meant.
func TestDamagedArchives(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for format, path := range archives(t) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			damaged := slices.Clone(raw)
			at := random.Intn(len(damaged))
			what := "cut"
			if random.Intn(3) == 0 {
				damaged = damaged[:at]
			} else {
				what = "flipped"
				damaged[at] ^= byte(1 + random.Intn(255))
			}
			importDamaged(t, format, what, at, damaged)
		}
	}
}

func importDamaged(t *testing.T, format, what string, at int, damaged []byte) {
	t.Helper()
	s := openAt(t, t.TempDir(), &memoryLedger{})
	_, err := s.Import(context.Background(), bytes.NewReader(damaged))
	if err != nil {
		storeIsEmptyButLayers(t, s)
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrInvalidReference) && !errors.Is(err, ErrPlatform) {
			t.Errorf("%s archive %s at %d: import says %v, which names no kind", format, what, at, err)
		}
		return
	}
	for _, img := range s.List() {
		if got := tree(t, img.Layers[len(img.Layers)-1]); got != "-rw-r--r-- base = x\ndrwxr-xr-x etc\n" {
			t.Errorf("%s archive %s at %d was imported as\n%s", format, what, at, got)
		}
	}
}

func storeIsEmptyButLayers(t *testing.T, s *Store) {
	t.Helper()
	if leftover, _ := os.ReadDir(s.tmp()); len(leftover) > 0 || len(s.List()) > 0 {
		t.Errorf("a refused import left %v and %v", leftover, s.List())
	}
}

func TestImportRefusals(t *testing.T) {
	s := openTest(t)
	dir := t.TempDir()
	untagged := filepath.Join(dir, "oci.tar")
	foreign := spec([]image.File{text("f", "x")})
	foreign.Architecture = "s390x"
	alien := filepath.Join(dir, "alien.tar")
	err := errors.Join(
		image.WriteOCIArchive(untagged, map[string]v1.Image{"latest": registry.Build(t, spec([]image.File{text("f", "x")}))}),
		image.WriteDockerArchive(alien, map[string]v1.Image{"nodeactor.io/alien:v1": registry.Build(t, foreign)}))
	if err != nil {
		t.Fatal(err)
	}
	random, empty, noImage := filepath.Join(dir, "random"), filepath.Join(dir, "empty"), filepath.Join(dir, "no-image.tar")
	archive, _ := image.Archive(text("a", "x"))
	writeFile(t, random, []byte(strings.Repeat("no archive", 1000)))
	writeFile(t, empty, nil)
	writeFile(t, noImage, archive)
	for path, want := range map[string]error{
		untagged: ErrInvalidReference, alien: ErrPlatform, random: ErrCorrupt, empty: ErrCorrupt, noImage: ErrCorrupt,
		filepath.Join(dir, "absent"): os.ErrNotExist,
	} {
		if _, err := s.ImportFile(context.Background(), path); !errors.Is(err, want) {
			t.Errorf("import of %s says %v, want %v", filepath.Base(path), err, want)
		}
	}
	storeIsEmpty(t, s)
}
