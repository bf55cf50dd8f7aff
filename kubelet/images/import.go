package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Names of the members by which archive formats are told apart.
const (
	dockerManifest = "manifest.json"
	ociIndex       = "index.json"
	ociLayoutFile  = "oci-layout"
)

// Import reads an image archive, as "docker save" or an OCI image layout in a tar, plain or compressed, and returns the
// normalised references it brought. Either all of its images are in the store afterwards or none: a damaged archive is
// refused with ErrCorrupt, one without names with ErrInvalidReference. An older image of the same reference is replaced.
// The archive is kept on disk while it is being read.
func (s *Store) Import(ctx context.Context, archive io.Reader) ([]string, error) {
	dir, err := s.tempDir("import")
	if err != nil {
		return nil, fmt.Errorf("cannot import images: %w", spaceError(err))
	}
	defer os.RemoveAll(dir)
	refs, err := s.importVia(ctx, archive, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot import images: %w", err)
	}
	return refs, nil
}

// ImportFile is Import from a file.
func (s *Store) ImportFile(ctx context.Context, path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot import images: %w", err)
	}
	defer f.Close()
	refs, err := s.Import(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return refs, nil
}

func (s *Store) importVia(ctx context.Context, r io.Reader, dir string) ([]string, error) {
	archive := filepath.Join(dir, "archive.tar")
	if err := spool(ctx, r, archive); err != nil {
		return nil, archiveError(ctx, err)
	}
	members, err := memberNames(ctx, archive)
	if err != nil {
		return nil, archiveError(ctx, err)
	}
	var sources []source
	switch {
	case members[dockerManifest]:
		sources, err = dockerSources(archive)
	case members[ociIndex] && members[ociLayoutFile]:
		sources, err = ociSources(ctx, archive, filepath.Join(dir, "layout"))
	default:
		err = fmt.Errorf("%w: neither %s nor %s and %s in the archive", ErrCorrupt, dockerManifest, ociLayoutFile, ociIndex)
	}
	if err != nil {
		return nil, err
	}
	return s.installAll(ctx, sources)
}

// installAll unpacks all sources before it makes the first of them visible.
func (s *Store) installAll(ctx context.Context, sources []source) ([]string, error) {
	var staged []*install
	defer func() {
		for _, in := range staged {
			in.release()
		}
	}()
	for _, src := range sources {
		in, err := s.stage(ctx, src, nil)
		staged = append(staged, in)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", src.ref, err)
		}
	}
	refs := make([]string, 0, len(sources))
	for _, in := range staged {
		if _, err := in.commit(); err != nil {
			return refs, fmt.Errorf("image %q: %w", in.src.ref, err)
		}
		refs = append(refs, in.src.ref)
	}
	return refs, nil
}

// spool copies a stream into a file, decompressed.
func spool(ctx context.Context, r io.Reader, path string) error {
	plain, done, err := decompress(&meter{ctx: ctx, r: r})
	if err != nil {
		return err
	}
	defer done()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, plain)
	return errors.Join(err, f.Close())
}

// memberNames lists an archive's members, and so finds out whether it is an archive that can be read to its end.
func memberNames(ctx context.Context, archive string) (map[string]bool, error) {
	names := map[string]bool{}
	err := eachMember(ctx, archive, func(h *tar.Header, _ io.Reader) error {
		if len(names) >= maxArchiveMembers {
			return fmt.Errorf("%w: more than %d members", ErrCorrupt, maxArchiveMembers)
		}
		name, err := memberPath(h.Name)
		names[name] = true
		return err
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%w: empty archive", ErrCorrupt)
	}
	return names, err
}

func eachMember(ctx context.Context, archive string, visit func(*tar.Header, io.Reader) error) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	tr := tar.NewReader(f)
	for ctx.Err() == nil {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(h, tr)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
