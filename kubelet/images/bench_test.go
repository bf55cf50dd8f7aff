package images

import (
	"context"
	"fmt"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/nodeactor/nodeactor/test/registry"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

// halfRandom gives content that compresses to about a half, as programs and libraries do.
func halfRandom(size int, seed int64) []byte {
	content := make([]byte, size)
	random := rand.New(rand.NewSource(seed))
	for i := range content {
		content[i] = byte(random.Intn(16))
	}
	return content
}

// BenchmarkPull pulls an image of 48 MB in 480 files and three layers into an empty store.
func BenchmarkPull(b *testing.B) {
	r := registry.Start(b)
	var s image.Spec
	for layer := range 3 {
		files := []image.File{{Path: fmt.Sprintf("layer%d/", layer)}}
		for i := range 160 {
			files = append(files, image.File{Path: fmt.Sprintf("layer%d/file%d", layer, i), Content: halfRandom(100<<10, int64(i))})
		}
		s.Layers = append(s.Layers, files)
	}
	ref := r.PushSpec("big:v1", s)
	for b.Loop() {
		store, err := Open(filepath.Join(b.TempDir(), "images"), &memoryLedger{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := store.Pull(context.Background(), ref, PullOptions{}); err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
}

// BenchmarkLookup finds an image among a hundred, as every container start does.
func BenchmarkLookup(b *testing.B) {
	s := &Store{dir: "/images", refs: map[string]record{}, layers: map[string]layerMeta{}}
	for i := range 100 {
		s.refs[fmt.Sprintf("docker.io/library/app%d:v1", i)] = record{Layers: []string{"a", "b", "c"}}
	}
	for b.Loop() {
		if _, ok := s.Lookup("app42:v1"); !ok {
			b.Fatal("not found")
		}
	}
}
