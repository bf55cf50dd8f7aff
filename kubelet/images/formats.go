package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/google/go-containerregistry/pkg/name"
)

// Annotations of an OCI index that carry an image's reference, the more telling first.
const (
	containerdNameAnnotation = "io.containerd.image.name"
	refNameAnnotation        = "org.opencontainers.image.ref.name"
)

// dockerSources reads what a docker archive holds: one source per tag.
func dockerSources(archive string) ([]source, error) {
	opener := func() (io.ReadCloser, error) { return os.Open(archive) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var sources []source
	for i, entry := range manifest {
		if len(entry.RepoTags) == 0 {
			return nil, fmt.Errorf("%w: image %d of the archive has no tag", ErrInvalidReference, i)
		}
		for _, tag := range entry.RepoTags {
			src, err := dockerSource(opener, tag)
			if err != nil {
				return nil, fmt.Errorf("image %q: %w", tag, err)
			}
			sources = append(sources, src)
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: no image in the archive", ErrCorrupt)
	}
	return sources, nil
}

func dockerSource(opener tarball.Opener, tag string) (source, error) {
	ref, err := Normalize(tag)
	if err != nil {
		return source{}, err
	}
	parsed, err := name.NewTag(tag)
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", ErrInvalidReference, err)
	}
	img, err := tarball.Image(opener, &parsed)
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	src, err := dockerDescribe(img)
	src.ref, src.digest = ref, src.id
	return src, err
}

// dockerDescribe is describe without a manifest: a docker archive has none that a registry would know, and to make one
// would mean to compress every layer.
func dockerDescribe(img v1.Image) (source, error) {
	id, err := img.ConfigName()
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return source{}, fmt.Errorf("%w: config: %w", ErrCorrupt, err)
	}
	if err := checkPlatform(file); err != nil {
		return source{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(file.RootFS.DiffIDs) != len(layers) {
		return source{}, fmt.Errorf("%w: config names %d layers, the archive %d", ErrCorrupt, len(file.RootFS.DiffIDs),
			len(layers))
	}
	return source{
		id: id.String(), config: configOf(file.Config), diffIDs: hashes(file.RootFS.DiffIDs),
		blobSize: func(int) int64 { return 0 },
		open:     func(i int) (io.ReadCloser, error) { return layers[i].Uncompressed() },
	}, nil
}

// ociSources reads an OCI image layout: one source per named manifest of its index.
func ociSources(ctx context.Context, archive, dir string) ([]source, error) {
	if err := extractLayout(ctx, archive, dir); err != nil {
		return nil, archiveError(ctx, err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var sources []source
	for _, desc := range manifest.Manifests {
		src, err := ociSource(index, desc)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", desc.Digest, err)
		}
		sources = append(sources, src)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: no image in the archive", ErrCorrupt)
	}
	return sources, nil
}

func ociSource(index v1.ImageIndex, desc v1.Descriptor) (source, error) {
	ref, err := annotatedRef(desc.Annotations)
	if err != nil {
		return source{}, err
	}
	img, err := ociImage(index, desc)
	if err != nil {
		return source{}, err
	}
	src, err := describe(img)
	if err != nil && !errors.Is(err, ErrPlatform) && !errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	src.ref, src.digest = ref, desc.Digest.String()
	return src, err
}

// ociImage opens a manifest, or the one for this node's platform in an index of several.
func ociImage(index v1.ImageIndex, desc v1.Descriptor) (v1.Image, error) {
	if !desc.MediaType.IsIndex() {
		return verified(index.Image(desc.Digest))(desc.Digest)
	}
	inner, err := index.ImageIndex(desc.Digest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for _, m := range manifest.Manifests {
		if m.MediaType.IsImage() && m.Platform != nil && m.Platform.Satisfies(platform) {
			return verified(inner.Image(m.Digest))(m.Digest)
		}
	}
	return nil, fmt.Errorf("%w %s in %s", ErrPlatform, platform, desc.Digest)
}

// verified checks a manifest against the digest it was asked for by; a layout on disk is not checked by its reader.
func verified(img v1.Image, err error) func(want v1.Hash) (v1.Image, error) {
	return func(want v1.Hash) (v1.Image, error) {
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		got, err := img.Digest()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if got != want {
			return nil, fmt.Errorf("%w: manifest has digest %s, index names %s", ErrCorrupt, got, want)
		}
		return img, nil
	}
}

// annotatedRef finds the full reference of a manifest; a bare tag is not enough to find an image by.
func annotatedRef(annotations map[string]string) (string, error) {
	for _, key := range []string{containerdNameAnnotation, refNameAnnotation} {
		if ref := annotations[key]; strings.ContainsAny(ref, "/:@") {
			return Normalize(ref)
		}
	}
	return "", fmt.Errorf("%w: no annotation %s with a full name", ErrInvalidReference, refNameAnnotation)
}

// extractLayout writes the regular files of an archive into a new directory.
func extractLayout(ctx context.Context, archive, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return eachMember(ctx, archive, func(h *tar.Header, content io.Reader) error {
		name, err := memberPath(h.Name)
		if err != nil || h.Typeflag != tar.TypeReg {
			return err
		}
		return extractFile(root, name, content)
	})
}

func extractFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %q is there twice", ErrCorrupt, name)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
