// Package image builds small container images in memory, without a builder, a base image or a network.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// File is one member of a layer. Without Type it is a symlink if Link is set, a directory if Path ends in "/", else a
// regular file.
type File struct {
	Path     string
	Content  []byte
	Mode     int64 // 0 means 0644 for files, 0755 for directories
	UID, GID int
	Link     string // target of a symlink, or of a hard link when Type is tar.TypeLink
	Type     byte
	Xattrs   map[string]string
}

// Spec says what an image holds. Layers are bottom first.
type Spec struct {
	Layers       [][]File
	Entrypoint   []string
	Cmd          []string
	Env          []string
	WorkingDir   string
	User         string
	StopSignal   string
	ExposedPorts []string
	Architecture string // "" means amd64
}

// buildTime is the time of everything in built images, so that equal specs give equal digests.
var buildTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Build makes the image of a spec. Equal specs give equal images.
func Build(spec Spec) (v1.Image, error) {
	img := v1.Image(empty.Image)
	for i, files := range spec.Layers {
		layer, err := Layer(files...)
		if err != nil {
			return nil, fmt.Errorf("cannot build layer %d: %w", i, err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, fmt.Errorf("cannot add layer %d: %w", i, err)
		}
	}
	return configure(img, spec)
}

func configure(img v1.Image, spec Spec) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", spec.Architecture
	if spec.Architecture == "" {
		file.Architecture = "amd64"
	}
	file.Created = v1.Time{Time: buildTime}
	file.Config = v1.Config{
		Entrypoint: spec.Entrypoint, Cmd: spec.Cmd, Env: spec.Env, WorkingDir: spec.WorkingDir, User: spec.User,
		StopSignal: spec.StopSignal,
	}
	for _, port := range spec.ExposedPorts {
		if file.Config.ExposedPorts == nil {
			file.Config.ExposedPorts = map[string]struct{}{}
		}
		file.Config.ExposedPorts[port] = struct{}{}
	}
	return mutate.ConfigFile(img, file)
}

// Layer makes a compressed layer of files, in the order given.
func Layer(files ...File) (v1.Layer, error) {
	archive, err := Archive(files...)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive)), nil
	})
}

// Archive makes the uncompressed archive of a layer.
func Archive(files ...File) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		if err := w.WriteHeader(f.header()); err != nil {
			return nil, fmt.Errorf("cannot archive %q: %w", f.Path, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("cannot archive %q: %w", f.Path, err)
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}

func (f File) header() *tar.Header {
	h := &tar.Header{
		Name: f.Path, Typeflag: f.kind(), Linkname: f.Link, Mode: f.Mode, Uid: f.UID, Gid: f.GID,
		Size: int64(len(f.Content)), ModTime: buildTime, Format: tar.FormatPAX,
	}
	if h.Mode == 0 {
		h.Mode = 0o644
		if h.Typeflag == tar.TypeDir {
			h.Mode = 0o755
		}
	}
	for name, value := range f.Xattrs {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords["SCHILY.xattr."+name] = value
	}
	return h
}

func (f File) kind() byte {
	switch {
	case f.Type != 0:
		return f.Type
	case f.Link != "":
		return tar.TypeSymlink
	case len(f.Path) > 0 && f.Path[len(f.Path)-1] == '/':
		return tar.TypeDir
	}
	return tar.TypeReg
}

// Binary makes a spec whose only program is the static binary at hostPath, started by "/<its base name>".
func Binary(hostPath string) (Spec, error) {
	content, err := os.ReadFile(hostPath)
	if err != nil {
		return Spec{}, fmt.Errorf("cannot read the image's binary: %w", err)
	}
	name := path.Base(hostPath)
	return Spec{
		Layers: [][]File{
			{
				{Path: "etc/"}, {Path: "tmp/", Mode: 0o1777}, {Path: "root/", Mode: 0o700},
				{Path: "etc/passwd", Content: []byte("root:x:0:0:root:/root:/\nnobody:x:65534:65534:nobody:/:/\n")},
				{Path: "etc/group", Content: []byte("root:x:0:\nnobody:x:65534:\n")},
			},
			{{Path: name, Content: content, Mode: 0o755}},
		},
		Entrypoint: []string{"/" + name},
		Env:        []string{"PATH=/"},
		WorkingDir: "/",
	}, nil
}
