package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"maps"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// refNameAnnotation carries an image's full reference in an OCI layout.
const refNameAnnotation = "org.opencontainers.image.ref.name"

// WriteDockerArchive writes images by reference into a docker archive, as "docker save" would.
func WriteDockerArchive(path string, images map[string]v1.Image) error {
	byTag := map[name.Reference]v1.Image{}
	for ref, img := range images {
		tag, err := name.NewTag(ref)
		if err != nil {
			return fmt.Errorf("cannot archive image: %w", err)
		}
		byTag[tag] = img
	}
	return tarball.MultiRefWriteToFile(path, byTag)
}

// WriteOCIArchive writes images by reference into a tar of an OCI image layout.
func WriteOCIArchive(path string, images map[string]v1.Image) error {
	dir, err := os.MkdirTemp("", "oci-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(images)) {
		annotation := layout.WithAnnotations(map[string]string{refNameAnnotation: ref})
		if err := l.AppendImage(images[ref], annotation); err != nil {
			return fmt.Errorf("cannot archive image %q: %w", ref, err)
		}
	}
	return tarDir(path, dir)
}

func tarDir(path, dir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	return errors.Join(w.AddFS(os.DirFS(filepath.Clean(dir))), w.Close(), f.Close())
}
