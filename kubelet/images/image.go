package images

import (
	"slices"
	"strings"
)

// Image is one image that is complete on this node. Values share their slices with the store: read, do not write.
type Image struct {
	// Ref is the normalised reference the image was asked for by, for example docker.io/library/nginx:1.27.
	Ref string
	// Digest is the digest the reference led to ("sha256:…"): of the index for images of several platforms, else of the
	// manifest. A docker archive carries no manifest a registry would know; its images have their ID here.
	Digest string
	// ID is the digest of the image's config ("sha256:…").
	ID string
	// Layers are absolute paths of the unpacked layers, top first: the lower directories of an overlay mount.
	Layers []string
	// Config is what the image says about the process to start.
	Config Config
	// Size is the number of bytes of all files of all layers.
	Size int64
}

// Config is the part of an image's config that a container start needs.
type Config struct {
	Entrypoint   []string
	Cmd          []string
	Env          []string // "NAME=value"
	WorkingDir   string
	User         string   // "user", "uid", "user:group" or ""; see ResolveUser
	ExposedPorts []string // "80/tcp", sorted
	StopSignal   string   // "SIGTERM", "15" or "" when the image names none
	Volumes      []string // absolute paths, sorted
	Labels       map[string]string
}

// ImageID is what a container status shows as imageID: the repository with the digest, or the ID alone for an image no
// registry knows.
func (i Image) ImageID() string {
	if i.Digest == i.ID {
		return i.ID
	}
	return repository(i.Ref) + "@" + i.Digest
}

// Command gives the argument vector of a container: command and args of the pod override Entrypoint and Cmd the way
// Kubernetes defines it. An empty result means that neither names anything to run.
func (c Config) Command(command, args []string) []string {
	if len(command) > 0 {
		return slices.Concat(command, args)
	}
	if len(args) > 0 {
		return slices.Concat(c.Entrypoint, args)
	}
	return slices.Concat(c.Entrypoint, c.Cmd)
}

// repository cuts tag and digest off a normalised reference.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i]
	}
	return ref
}
