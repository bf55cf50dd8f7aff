package images

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nodeactor/nodeactor/test/registry/image"
)

// FuzzUnpack: whatever the bytes of a layer are, unpacking neither panics nor touches anything beside its directory.
func FuzzUnpack(f *testing.F) {
	if os.Getuid() != 0 {
		f.Skip("unpacking layers needs root")
	}
	for _, files := range [][]image.File{
		{text("a", "x"), {Path: "d/"}, text("d/.wh..wh..opq", ""), text(".wh.gone", "")},
		{{Path: "l", Link: "../../outside"}, text("l/victim", "owned")},
		{{Path: "h", Link: "l/victim", Type: tar.TypeLink}, {Path: "l", Link: "/"}},
		{text("../victim", "owned"), {Path: "p", Type: tar.TypeFifo}},
	} {
		archive, err := image.Archive(files...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive)
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		layer, lower := filepath.Join(dir, "layer"), filepath.Join(dir, "lower")
		for _, d := range []string{layer, lower} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(dir, filepath.Join(lower, "l")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := unpack(context.Background(), bytes.NewReader(archive), layer, []string{lower}, roomy); err == nil {
			walkable(t, layer)
		}
		entries, err := os.ReadDir(dir)
		if below, _ := os.ReadDir(lower); err != nil || len(entries) != 2 || len(below) != 1 {
			t.Fatalf("unpacking changed what is beside the layer: %v, %v", entries, below)
		}
	})
}

// walkable reads an unpacked layer through a stack, as ResolveUser would.
func walkable(t *testing.T, layer string) {
	t.Helper()
	s, err := openStack([]string{layer})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if f, _, err := s.openOptional("etc/passwd"); err == nil && f != nil {
		f.(*os.File).Close()
	}
}

// FuzzNormalize: a string is refused, or its normal form is its own normal form.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"nginx", "a/b:c", "localhost:5000/x@sha256:", "", "::", "UPPER/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		full, err := Normalize(ref)
		if err != nil {
			return
		}
		if again, err := Normalize(full); again != full || err != nil {
			t.Errorf("Normalize(%q) = %q, of which the normal form is %q, %v", ref, full, again, err)
		}
	})
}
