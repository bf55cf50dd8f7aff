package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	layerContent = "fs"         // directory inside a layer's directory that is mounted
	layerMetaFin = "layer.json" // file beside it that describes it
	chainSuffix  = ".chain"     // marks layers named by chain ID
)

// layerMeta describes one unpacked layer; it is written into the layer's directory before that gets its final name.
type layerMeta struct {
	DiffID string `json:"diffID"`
	Size   int64  `json:"size"` // bytes of all files
}

// source is an image that is about to be installed, wherever it comes from.
type source struct {
	ref, digest, id string
	diffIDs         []string // bottom first
	config          Config
	blobSize        func(i int) int64
	open            func(i int) (io.ReadCloser, error) // layer i, bottom first, compressed or not
	remote          bool                               // worth fetching ahead
}

// install is one source on its way into the store.
type install struct {
	s      *Store
	src    source
	ahead  *fetcher          // nil when nothing is fetched ahead
	fresh  map[string]string // layer name -> temporary directory
	names  []string          // all layers, bottom first
	pinned []string
}

// stage unpacks the layers the store does not have into temporary directories. The install it returns must be released,
// also after an error.
func (s *Store) stage(ctx context.Context, src source, report func(Progress)) (*install, error) {
	in := &install{s: s, src: src, fresh: map[string]string{}}
	if err := src.checkLayers(); err != nil {
		return in, err
	}
	missing := in.missing()
	t := &tally{report: report, p: Progress{Layers: len(missing), Total: src.size(missing)}}
	if len(missing) > 0 {
		if err := s.ensureSpace(t.p.Total); err != nil {
			return in, err
		}
	}
	if src.remote && len(missing) > 1 {
		ahead, err := in.fetchAhead(ctx, missing[1:], t)
		if err != nil {
			return in, err
		}
		in.ahead = ahead
	}
	return in, in.unpackMissing(ctx, t)
}

func (in *install) unpackMissing(ctx context.Context, t *tally) error {
	for i, id := range in.src.diffIDs {
		if name, ok := in.reuse(i); ok {
			in.names = append(in.names, name)
			continue
		}
		t.nextLayer()
		if err := in.unpackLayer(ctx, i, t); err != nil {
			return fmt.Errorf("cannot unpack layer %s: %w", id, err)
		}
	}
	return nil
}

// checkLayers refuses what no image can be.
func (src source) checkLayers() error {
	if n := len(src.diffIDs); n == 0 || n > maxLayers {
		return fmt.Errorf("%w: image has %d layers, want 1 to %d", ErrCorrupt, n, maxLayers)
	}
	for _, id := range src.diffIDs {
		if !strings.HasPrefix(id, "sha256:") {
			return fmt.Errorf("%w: layer has digest %s, want sha256", ErrCorrupt, id)
		}
	}
	return nil
}

// size adds up the compressed bytes of layers, as far as they can be told beforehand.
func (src source) size(layers []int) (total int64) {
	for _, i := range layers {
		total += src.blobSize(i)
	}
	return total
}

// missing lists the layers to read.
func (in *install) missing() (layers []int) {
	for i := range in.src.diffIDs {
		if _, ok := in.reuse(i); !ok {
			layers = append(layers, i)
		}
	}
	return layers
}

// reuse finds layer i among the complete layers and keeps GC off it until release.
func (in *install) reuse(i int) (string, bool) {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	for _, name := range []string{chainName(in.src.diffIDs[:i+1]), diffName(in.src.diffIDs[i])} {
		if _, ok := in.fresh[name]; ok {
			return name, true
		}
		if _, ok := in.s.layers[name]; ok {
			in.s.pins[name]++
			in.pinned = append(in.pinned, name)
			return name, true
		}
	}
	return "", false
}

func (in *install) unpackLayer(ctx context.Context, i int, t *tally) error {
	dir, err := in.s.tempDir("layer")
	if err != nil {
		return spaceError(err)
	}
	content := filepath.Join(dir, layerContent)
	in.fresh[dir] = dir // so that discard finds it; renamed below
	if err := os.Mkdir(content, 0o755); err != nil {
		return spaceError(err)
	}
	if err := os.Chmod(content, 0o755); err != nil {
		return err
	}
	size, chained, err := in.readLayer(ctx, i, content, t)
	if err != nil {
		return err
	}
	meta := layerMeta{DiffID: in.src.diffIDs[i], Size: size}
	if err := errors.Join(writeMeta(dir, meta), in.s.markUnsettled(dir)); err != nil {
		return spaceError(err)
	}
	name := diffName(in.src.diffIDs[i])
	if chained {
		name = chainName(in.src.diffIDs[:i+1])
	}
	delete(in.fresh, dir)
	in.fresh[name] = dir
	in.names = append(in.names, name)
	return nil
}

// readLayer streams layer i into content and checks that what it read is what the config names.
func (in *install) readLayer(ctx context.Context, i int, content string, t *tally) (int64, bool, error) {
	blob, counted, err := in.ahead.open(i)
	if counted {
		t = nil
	} else {
		blob, err = in.src.open(i)
	}
	if err != nil {
		return 0, false, err
	}
	defer blob.Close()
	plain, done, err := decompress(&meter{ctx: ctx, r: blob, tally: t})
	if err != nil {
		return 0, false, archiveError(ctx, err)
	}
	defer done()
	hash := sha256.New()
	hashed := io.TeeReader(plain, hash)
	size, chained, err := unpack(ctx, hashed, content, in.lowers(), in.s.room)
	if err != nil {
		return 0, false, err
	}
	// What follows the archive's end still belongs to the layer's hash, and to the check of the compressed one.
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		return 0, false, archiveError(ctx, err)
	}
	if got := "sha256:" + hex.EncodeToString(hash.Sum(nil)); got != in.src.diffIDs[i] {
		return 0, false, fmt.Errorf("%w: content has digest %s", ErrCorrupt, got)
	}
	return size, chained, nil
}

// lowers gives the directories of the layers handled so far, top first.
func (in *install) lowers() []string {
	dirs := make([]string, 0, len(in.names))
	for _, name := range in.topFirst() {
		if dir, ok := in.fresh[name]; ok {
			dirs = append(dirs, filepath.Join(dir, layerContent))
			continue
		}
		dirs = append(dirs, in.s.layerDir(name))
	}
	return dirs
}

// commit gives staged layers their names and writes the reference, in that order: a crash between leaves complete layers
// without a reference, which GC removes.
func (in *install) commit() (Image, error) {
	s := in.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, dir := range in.fresh {
		if err := in.publish(name, dir); err != nil {
			return Image{}, spaceError(err)
		}
	}
	s.settleSoon()
	r := record{Digest: in.src.digest, ID: in.src.id, Config: in.src.config, Layers: in.topFirst()}
	if err := s.ledger.Put(bucket, in.src.ref, r); err != nil {
		return Image{}, err
	}
	s.refs[in.src.ref] = r
	return s.image(in.src.ref, r), nil
}

// topFirst lists the image's layers for an overlay, which takes each directory once: of a repeated layer, usually an
// empty one, the topmost place counts.
func (in *install) topFirst() []string {
	names := make([]string, 0, len(in.names))
	for _, name := range slices.Backward(in.names) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// publish gives one staged layer its name, unless another install was faster. The caller holds mu.
func (in *install) publish(name, dir string) error {
	if _, ok := in.s.layers[name]; ok {
		return nil
	}
	meta, err := readMeta(dir)
	if err != nil {
		return err
	}
	target := filepath.Join(in.s.layersDir(), name)
	// A directory of that name which is not among the layers is damaged: move it out of the way.
	if err := os.Rename(target, dir+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(dir, target); err != nil {
		return err
	}
	in.s.layers[name] = meta
	in.s.unsettled[name] = true
	return nil
}

// release ends an install, whose context should have ended if it failed: temporary directories go, and GC may again take
// what nothing names. It is called once, whether commit came or not.
func (in *install) release() {
	in.ahead.stop()
	for _, dir := range in.fresh {
		for _, path := range []string{dir, dir + ".damaged"} {
			if err := os.RemoveAll(path); err != nil {
				in.s.log.Warn("cannot remove temporary layer", "path", path, "err", err)
			}
		}
	}
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	for _, name := range in.pinned {
		if in.s.pins[name]--; in.s.pins[name] == 0 {
			delete(in.s.pins, name)
		}
	}
}

// room asks for nothing but the reserve.
func (s *Store) room() error { return s.ensureSpace(0) }

// ensureSpace refuses early what will not fit: unpacked layers are at least as large as compressed ones.
func (s *Store) ensureSpace(need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return fmt.Errorf("cannot find out the free space: %w", err)
	}
	free := st.Bavail * uint64(st.Bsize)
	if uint64(need)+s.reserve > free {
		return fmt.Errorf("%w: %d bytes needed beside a reserve of %d, %d free", ErrNoSpace, need, s.reserve, free)
	}
	return nil
}

func diffName(diffID string) string { return strings.TrimPrefix(diffID, "sha256:") }

// chainName names a layer by itself and all layers below it; diffIDs are bottom first, the layer is the last.
func chainName(diffIDs []string) string {
	chain := diffIDs[0]
	for _, id := range diffIDs[1:] {
		chain = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(chain+" "+id)))
	}
	return diffName(chain) + chainSuffix
}

func writeMeta(dir string, meta layerMeta) error {
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, layerMetaFin), raw, 0o600)
}

func readMeta(dir string) (layerMeta, error) {
	var meta layerMeta
	raw, err := os.ReadFile(filepath.Join(dir, layerMetaFin))
	if err != nil {
		return meta, err
	}
	return meta, json.Unmarshal(raw, &meta)
}
