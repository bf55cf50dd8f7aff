package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

const (
	dialTimeout           = 10 * time.Second // connecting to a registry
	responseHeaderTimeout = 30 * time.Second // from request to the first byte of an answer
	idleConnTimeout       = 30 * time.Second // keeping an unused connection
	userAgent             = "nodeactor"
)

// platform is the one this node runs.
var platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// Pull makes an image present, or checks with its registry that what is present is still what the reference means. It
// always asks the registry, except for a reference by digest that is already complete. On failure nothing changes: an
// older image of that reference stays usable.
//
// The error is ErrInvalidReference, or wraps ErrPull together with the cause: ErrStalled, ErrNoSpace, ErrCorrupt,
// ErrPlatform, the context's error, or the registry's own words.
func (s *Store) Pull(ctx context.Context, ref string, options PullOptions) (Image, error) {
	full, err := Normalize(ref)
	if err != nil {
		return Image{}, err
	}
	if img, ok := s.Lookup(full); ok && pinned(full) {
		return img, nil
	}
	img, err := s.sharePull(ctx, full, options)
	if err != nil {
		return Image{}, &pullError{ref: full, err: err}
	}
	return img, nil
}

// flight is one pull that several callers may be waiting for.
type flight struct {
	done chan struct{}
	img  Image
	err  error

	mu        sync.Mutex
	listeners []func(Progress)
}

func (f *flight) listen(report func(Progress)) {
	if report != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.listeners = append(f.listeners, report)
	}
}

func (f *flight) report(p Progress) {
	f.mu.Lock()
	listeners := slices.Clone(f.listeners)
	f.mu.Unlock()
	for _, report := range listeners {
		report(p)
	}
}

// sharePull lets the first caller of a reference pull and the others wait for it. When the first gives up because its
// own context ended, one of the others goes on. Callers with different credentials never share.
func (s *Store) sharePull(ctx context.Context, ref string, options PullOptions) (Image, error) {
	auths := options.Auth.candidates(ref)
	key := ref + "\n" + fingerprint(auths)
	for {
		f, leader := s.join(key)
		f.listen(options.Progress)
		if leader {
			s.lead(ctx, f, key, ref, auths)
			return f.img, f.err
		}
		select {
		case <-ctx.Done():
			return Image{}, context.Cause(ctx)
		case <-f.done:
		}
		if !errors.Is(f.err, errLeaderGone) {
			return f.img, f.err
		}
	}
}

// errLeaderGone marks the failure of a flight whose leader's context ended.
var errLeaderGone = errors.New("pull given up")

func (s *Store) join(key string) (f *flight, leader bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.flights[key]; ok {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	s.flights[key] = f
	return f, true
}

// lead runs a flight. It ends the flight even when the pull panics, so that no waiter is left behind.
func (s *Store) lead(ctx context.Context, f *flight, key, ref string, auths []authn.Authenticator) {
	f.err = errLeaderGone
	defer func() {
		s.mu.Lock()
		delete(s.flights, key)
		s.mu.Unlock()
		close(f.done)
	}()
	f.img, f.err = s.pull(ctx, ref, auths, f.report)
	if f.err != nil && ctx.Err() != nil {
		f.err = fmt.Errorf("%w: %w", errLeaderGone, context.Cause(ctx))
	}
}

func (s *Store) pull(ctx context.Context, ref string, auths []authn.Authenticator, report func(Progress)) (Image, error) {
	ctx, dog := watch(ctx, s.clock, s.noProgress)
	defer dog.stop()
	src, err := s.resolve(ctx, ref, auths)
	if err != nil {
		return Image{}, causeOf(ctx, err)
	}
	if img, ok := s.unchanged(src); ok {
		return img, nil
	}
	in, err := s.stage(ctx, src, func(p Progress) {
		dog.touch()
		report(p)
	})
	defer in.release()
	defer dog.stop()
	if err != nil {
		return Image{}, causeOf(ctx, err)
	}
	return in.commit()
}

// unchanged finds the image when the registry still means the one that is here.
func (s *Store) unchanged(src source) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.refs[src.ref]
	if !ok || r.Digest != src.digest || r.ID != src.id {
		return Image{}, false
	}
	return s.image(src.ref, r), true
}

// resolve asks the registry what a reference means, with one credential after the other while they are refused.
func (s *Store) resolve(ctx context.Context, ref string, auths []authn.Authenticator) (source, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return source{}, fmt.Errorf("%w: %w", ErrInvalidReference, err)
	}
	var refused error
	for _, auth := range auths {
		src, err := s.resolveAs(ctx, ref, parsed, auth)
		if err == nil || !unauthorized(err) {
			return src, err
		}
		refused = err
	}
	return source{}, refused
}

func (s *Store) resolveAs(ctx context.Context, ref string, parsed name.Reference, auth authn.Authenticator) (source, error) {
	desc, err := remote.Get(parsed, remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(s.transport),
		remote.WithPlatform(platform), remote.WithUserAgent(userAgent))
	if err != nil {
		return source{}, err
	}
	img, err := desc.Image()
	if err != nil {
		if desc.MediaType.IsIndex() && strings.Contains(err.Error(), "no child with platform") {
			return source{}, fmt.Errorf("%w %s in %s", ErrPlatform, platform, desc.Digest)
		}
		return source{}, err
	}
	src, err := describe(img)
	src.ref, src.digest, src.remote = ref, desc.Digest.String(), true
	return src, err
}

// describe reads manifest and config of an image and checks them against each other.
func describe(img v1.Image) (source, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return source{}, err
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return source{}, err
	}
	id := fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
	if len(raw) > maxJSONSize || id != manifest.Config.Digest.String() {
		return source{}, fmt.Errorf("%w: config has digest %s, manifest names %s", ErrCorrupt, id, manifest.Config.Digest)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return source{}, fmt.Errorf("%w: config: %w", ErrCorrupt, err)
	}
	if err := checkPlatform(file); err != nil {
		return source{}, err
	}
	if len(file.RootFS.DiffIDs) != len(manifest.Layers) {
		return source{}, fmt.Errorf("%w: config names %d layers, manifest %d", ErrCorrupt, len(file.RootFS.DiffIDs),
			len(manifest.Layers))
	}
	return sourceOf(img, id, manifest, file)
}

func sourceOf(img v1.Image, id string, manifest *v1.Manifest, file *v1.ConfigFile) (source, error) {
	layers, err := img.Layers()
	if err != nil {
		return source{}, err
	}
	src := source{
		id: id, config: configOf(file.Config), diffIDs: hashes(file.RootFS.DiffIDs),
		blobSize: func(i int) int64 { return max(manifest.Layers[i].Size, 0) },
		open:     func(i int) (io.ReadCloser, error) { return layers[i].Compressed() },
	}
	return src, nil
}

func hashes(diffIDs []v1.Hash) []string {
	all := make([]string, 0, len(diffIDs))
	for _, id := range diffIDs {
		all = append(all, id.String())
	}
	return all
}

// checkPlatform refuses an image that says it is for another platform. One that says nothing is taken.
func checkPlatform(file *v1.ConfigFile) error {
	osOK := file.OS == "" || file.OS == platform.OS
	archOK := file.Architecture == "" || file.Architecture == platform.Architecture
	if osOK && archOK {
		return nil
	}
	return fmt.Errorf("%w %s, the image is for %s/%s", ErrPlatform, platform, file.OS, file.Architecture)
}

func configOf(c v1.Config) Config {
	return Config{
		Entrypoint: c.Entrypoint, Cmd: c.Cmd, Env: c.Env, WorkingDir: c.WorkingDir, User: c.User,
		ExposedPorts: slices.Sorted(maps.Keys(c.ExposedPorts)), StopSignal: c.StopSignal,
		Volumes: slices.Sorted(maps.Keys(c.Volumes)), Labels: c.Labels,
	}
}

func unauthorized(err error) bool {
	var refused *transport.Error
	return errors.As(err, &refused) &&
		(refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden)
}

// fingerprint tells sets of credentials apart without keeping them.
func fingerprint(auths []authn.Authenticator) string {
	hash := sha256.New()
	for _, auth := range auths {
		if c, err := auth.Authorization(); err == nil {
			fmt.Fprintf(hash, "%q %q\n", c.Username, c.Password)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: responseHeaderTimeout,
		IdleConnTimeout:       idleConnTimeout,
		MaxIdleConnsPerHost:   8,
		ForceAttemptHTTP2:     true,
	}
}
