package images

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// bucket of the ledger that maps normalised references to records.
const bucket = "images"

// Store holds the images of one node. It is safe for concurrent use.
type Store struct {
	dir        string
	ledger     Ledger
	log        *slog.Logger
	clock      Clock
	noProgress time.Duration
	reserve    uint64 // bytes that stay free
	transport  *http.Transport

	bootID      string
	settleDelay time.Duration
	background  *supervision.Group

	mu        sync.Mutex
	refs      map[string]record
	layers    map[string]layerMeta // complete layer directories by name
	pins      map[string]int       // layers that installs in flight rely on
	flights   map[string]*flight
	unsettled map[string]bool // layers that may not be on the disk yet
	settling  bool            // somebody is seeing to them
}

// record is what the ledger keeps per reference.
type record struct {
	Digest string   `json:"digest"`
	ID     string   `json:"id"`
	Layers []string `json:"layers"` // directory names, top first
	Config Config   `json:"config"`
}

// Open makes or opens the store in dir. What a crash left half unpacked is removed; a reference whose layers are not
// all there is forgotten, and pulled again when it is needed. dir and ledger must not be used by another process.
func Open(dir string, ledger Ledger, log *slog.Logger, options ...Option) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open image store: %w", err)
	}
	s := &Store{
		dir: dir, ledger: ledger, log: orDiscard(log), clock: supervision.RealClock(), noProgress: NoProgressLimit,
		reserve: spaceReserve, transport: newTransport(), settleDelay: settleDelay,
		background: supervision.NewGroup(context.Background(), "images", nil), unsettled: map[string]bool{},
		refs: map[string]record{}, layers: map[string]layerMeta{}, pins: map[string]int{}, flights: map[string]*flight{},
	}
	for _, option := range options {
		option(s)
	}
	if err := s.load(); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot open image store %s: %w", dir, err)
	}
	return s, nil
}

// load finds out what is there.
func (s *Store) load() (err error) {
	if s.bootID, err = readBootID(); err != nil {
		return err
	}
	if err := errors.Join(s.sweep(), s.loadLayers()); err != nil {
		return err
	}
	if err := s.loadRefs(); err != nil {
		return fmt.Errorf("cannot read the index: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleSoon()
	return nil
}

// Close gives idle connections to registries back and waits for nothing. Pulls in flight end by their own contexts.
func (s *Store) Close() {
	s.transport.CloseIdleConnections()
	s.background.Cancel()
}

// Lookup finds a complete image by reference, by repository and digest, or by image ID, without touching the network.
// A string that is no reference finds nothing.
func (s *Store) Lookup(ref string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.refs[ref]; ok {
		return s.image(ref, r), true
	}
	if strings.HasPrefix(ref, "sha256:") {
		return s.first(func(_ string, r record) bool { return r.ID == ref })
	}
	full, err := Normalize(ref)
	if err != nil {
		return Image{}, false
	}
	if r, ok := s.refs[full]; ok {
		return s.image(full, r), true
	}
	repo, digest, ok := strings.Cut(full, "@")
	if !ok {
		return Image{}, false
	}
	return s.first(func(name string, r record) bool { return r.Digest == digest && repository(name) == repo })
}

// Require is Lookup for a pod that must not pull: the error is ErrInvalidReference or ErrNotPresent.
func (s *Store) Require(ref string) (Image, error) {
	full, err := Normalize(ref)
	if err != nil {
		return Image{}, err
	}
	if img, ok := s.Lookup(full); ok {
		return img, nil
	}
	return Image{}, fmt.Errorf("cannot use image %q: %w", ref, ErrNotPresent)
}

// List gives all images, one per reference, ordered by reference.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Image, 0, len(s.refs))
	for ref, r := range s.refs {
		all = append(all, s.image(ref, r))
	}
	slices.SortFunc(all, func(a, b Image) int { return cmp.Compare(a.Ref, b.Ref) })
	return all
}

// Remove forgets a reference. Its layers stay until GC, since containers may be using them. Removing what is not there
// is no error.
func (s *Store) Remove(ref string) error {
	full, err := Normalize(ref)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.refs[full]; !ok {
		return nil
	}
	if err := s.ledger.Delete(bucket, full); err != nil {
		return fmt.Errorf("cannot remove image %q: %w", full, err)
	}
	delete(s.refs, full)
	return nil
}

// image builds the public value. The caller holds mu.
func (s *Store) image(ref string, r record) Image {
	img := Image{Ref: ref, Digest: r.Digest, ID: r.ID, Config: r.Config, Layers: make([]string, 0, len(r.Layers))}
	for _, name := range r.Layers {
		img.Layers = append(img.Layers, s.layerDir(name))
		img.Size += s.layers[name].Size
	}
	return img
}

// first finds the matching image with the smallest reference. The caller holds mu.
func (s *Store) first(match func(ref string, r record) bool) (Image, bool) {
	for _, ref := range slices.Sorted(maps.Keys(s.refs)) {
		if match(ref, s.refs[ref]) {
			return s.image(ref, s.refs[ref]), true
		}
	}
	return Image{}, false
}

// sweep removes what installs cut short have left, and makes the directories.
func (s *Store) sweep() error {
	if err := os.RemoveAll(s.tmp()); err != nil {
		return err
	}
	for _, dir := range []string{s.tmp(), s.layersDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadLayers() error {
	entries, err := os.ReadDir(s.layersDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		meta, broken := readMeta(filepath.Join(s.layersDir(), e.Name()))
		if broken != nil {
			s.log.Warn("layer without description is not used", "layer", e.Name(), "err", broken)
			continue
		}
		if !s.survived(e.Name()) {
			s.log.Warn("layer may not have reached the disk before the machine stopped and is removed", "layer", e.Name())
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.layersDir(), e.Name())))
			continue
		}
		s.layers[e.Name()] = meta
	}
	return err
}

func (s *Store) loadRefs() error {
	var broken []string
	err := s.ledger.Each(bucket, func(ref string, raw []byte) error {
		var r record
		if json.Unmarshal(raw, &r) != nil || !s.complete(r) {
			broken = append(broken, ref)
			return nil
		}
		s.refs[ref] = r
		return nil
	})
	for _, ref := range broken {
		s.log.Warn("image is not complete and is forgotten", "image", ref)
		err = errors.Join(err, s.ledger.Delete(bucket, ref))
	}
	return err
}

func (s *Store) complete(r record) bool {
	for _, name := range r.Layers {
		if _, ok := s.layers[name]; !ok {
			return false
		}
	}
	return len(r.Layers) > 0
}

func (s *Store) tmp() string                         { return filepath.Join(s.dir, "tmp") }
func (s *Store) layersDir() string                   { return filepath.Join(s.dir, "layers") }
func (s *Store) layerDir(name string) string         { return filepath.Join(s.layersDir(), name, layerContent) }
func (s *Store) tempDir(kind string) (string, error) { return os.MkdirTemp(s.tmp(), kind+"-") }
