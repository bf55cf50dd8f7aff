package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/store/ledger"
)

func TestArchiveCanBeImported(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("unpacking layers needs root")
	}
	for _, format := range []string{"docker", "oci"} {
		dir := t.TempDir()
		archive := filepath.Join(dir, "demo.tar")
		tags := []string{"nodeactor.io/demo:v1", "nodeactor.io/demo:v2"}
		program := filepath.Join(dir, "demo")
		if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := pack(archive, program, format, tags); err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Open(filepath.Join(dir, "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		s, err := images.Open(filepath.Join(dir, "images"), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		refs, err := s.ImportFile(context.Background(), archive)
		if slices.Sort(refs); err != nil || !slices.Equal(refs, tags) {
			t.Fatalf("import of the %s archive gives %v, %v", format, refs, err)
		}
		v1, _ := s.Lookup(tags[0])
		v2, _ := s.Lookup(tags[1])
		if info, err := os.Stat(filepath.Join(v1.Layers[0], "demo")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the program is %v, %v", info, err)
		}
		if v1.ID == v2.ID || !slices.Equal(v1.Layers, v2.Layers) || !slices.Contains(v2.Config.Env, "DEMO_VERSION=v2") {
			t.Errorf("images are %+v and %+v, want different configs over equal layers", v1, v2)
		}
	}
}

func TestPackRefusals(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][2]string{"binary": {"/nonexistent", "docker"}, "format": {binary, "zip"}} {
		err := pack(filepath.Join(dir, "out.tar"), args[0], args[1], nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pack of %v says %v, want %q in it", args, err, want)
		}
	}
}
