package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nodeactor/nodeactor/kubelet/images"
	"github.com/nodeactor/nodeactor/kubelet/podspec"
)

// ImageService is what people can do with the node's images.
type ImageService struct{ s *shared }

// collector is what an image store offers for deleting layers.
type collector interface {
	GC(ctx context.Context, inUse func(layerDir string) bool) (freed int64, err error)
}

// Import reads an OCI or docker archive and returns the references it brought.
func (i ImageService) Import(ctx context.Context, r io.Reader) ([]string, error) {
	return i.s.Images.Import(ctx, r)
}

// Pull fetches an image anonymously.
func (i ImageService) Pull(ctx context.Context, ref string) (images.Image, error) {
	return i.s.Images.Pull(ctx, ref, images.PullOptions{})
}

// List returns the images that are present.
func (i ImageService) List() []images.Image { return i.s.Images.List() }

// Remove forgets an image and deletes the layers nothing else uses. Containers that run from it keep theirs.
func (i ImageService) Remove(ctx context.Context, ref string) error {
	if err := i.s.Images.Remove(ref); err != nil {
		return err
	}
	return collectImages(ctx, i.s, false)
}

// collectImages deletes layers no image and no container uses; with unused, images no pod uses are forgotten first.
func collectImages(ctx context.Context, s *shared, unused bool) error {
	gc, ok := s.Images.(collector)
	if !ok {
		return nil
	}
	records, err := s.Runtime.List(ctx)
	if err != nil {
		return fmt.Errorf("cannot tell which image layers are in use: %w", err)
	}
	used := map[string]bool{}
	for _, r := range records {
		for _, c := range r.Containers {
			for _, l := range podspec.Layers(c.Labels) {
				used[l] = true
			}
		}
	}
	var errs []error
	if unused {
		errs = append(errs, s.forgetUnused())
	}
	_, err = gc.GC(ctx, func(dir string) bool { return used[dir] })
	return errors.Join(append(errs, err)...)
}

// forgetUnused forgets the images no pod of this node names.
func (s *shared) forgetUnused() error {
	named := map[string]bool{}
	for _, p := range s.table.List() {
		for i := range p.Spec.InitContainers {
			s.name(named, p.Spec.InitContainers[i].Image)
		}
		for i := range p.Spec.Containers {
			s.name(named, p.Spec.Containers[i].Image)
		}
	}
	var errs []error
	for _, img := range s.Images.List() {
		if !named[img.Ref] {
			errs = append(errs, s.Images.Remove(img.Ref))
		}
	}
	return errors.Join(errs...)
}

func (s *shared) name(named map[string]bool, ref string) {
	if img, ok := s.Images.Lookup(ref); ok {
		named[img.Ref] = true
	}
}
