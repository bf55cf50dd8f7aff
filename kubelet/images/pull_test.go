package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/nodeactor/nodeactor/test/registry"
	"github.com/nodeactor/nodeactor/test/registry/image"
)

func TestPullGivesAnImageThatRuns(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.Push("demo:v1", registry.DemoImage(t, "v1"))
	var last Progress
	img, err := s.Pull(context.Background(), ref, PullOptions{Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	if last.Layer != 2 || last.Layers != 2 || last.Bytes == 0 || last.Bytes != last.Total {
		t.Errorf("progress ended at %+v", last)
	}
	root := mountOverlay(t, img.Layers)
	if info, err := os.Stat(root + "/demo"); err != nil || info.Mode().Perm() != 0o755 || img.Size < info.Size() {
		t.Errorf("demo: %v (%v), image size %d", info, err, img.Size)
	}
	c := img.Config
	if c.Entrypoint[0] != "/demo" || c.ExposedPorts[0] != "8080/tcp" || c.StopSignal != "SIGTERM" || c.WorkingDir != "/" {
		t.Errorf("config is %+v", c)
	}
	if !strings.HasPrefix(img.ImageID(), r.Host+"/demo@sha256:") {
		t.Errorf("image ID is %q", img.ImageID())
	}
	if got, ok := s.Lookup(img.ImageID()); !ok || got.ID != img.ID {
		t.Errorf("lookup by digest finds %v, %v", got, ok)
	}
	if got, ok := s.Lookup(img.ID); !ok || got.Ref != ref {
		t.Errorf("lookup by ID finds %v, %v", got, ok)
	}
}

func TestPullAgainAsksForTheManifestAlone(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "1")}))
	first := mustPull(t, s, ref)
	manifests, blobs := r.Requests("GET /v2/a/manifests"), r.Requests("GET /v2/a/blobs")
	if again := mustPull(t, s, ref); again.Digest != first.Digest {
		t.Errorf("second pull gives %s, first %s", again.Digest, first.Digest)
	}
	if r.Requests("GET /v2/a/manifests") == manifests {
		t.Error("the second pull did not ask what the tag means now")
	}
	// The config is read to compare, the layer is not.
	if n := r.Requests("GET /v2/a/blobs") - blobs; n > 1 {
		t.Errorf("the second pull read %d blobs", n)
	}
}

func TestMovedTagGivesTheNewImage(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "1")}))
	first := mustPull(t, s, ref)
	r.PushSpec("a:v1", spec([]image.File{text("f", "2")}))
	second := mustPull(t, s, ref)
	if second.Digest == first.Digest {
		t.Error("the tag moved, the image did not")
	}
	if pinned := mustPull(t, s, first.ImageID()); pinned.ID != first.ID {
		t.Errorf("the first digest gives %s, want %s", pinned.ID, first.ID)
	}
	before := r.Requests("")
	mustPull(t, s, second.ImageID())
	if r.Requests("") != before {
		t.Error("an image by digest that is here was asked for")
	}
}

func TestLayersAreShared(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	base := []image.File{text("base", "x")}
	a := mustPull(t, s, r.PushSpec("a:v1", spec(base, []image.File{text("a", "1")})))
	b := mustPull(t, s, r.PushSpec("b:v1", spec(base, []image.File{text("b", "2")})))
	if a.Layers[1] != b.Layers[1] || a.Layers[0] == b.Layers[0] {
		t.Errorf("layers are %v and %v, want the lower one shared", a.Layers, b.Layers)
	}
	if n := r.Requests("GET /v2/b/blobs"); n != 2 {
		t.Errorf("%d blobs read for the second image, want config and own layer", n)
	}
}

// A layer without its parent directories looks different over different bases, and must not be shared between them.
func TestLayerDependingOnBaseIsNotSharedAcrossBases(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	top := []image.File{text("lib/x", "1")}
	a := mustPull(t, s, r.PushSpec("a:v1", spec([]image.File{{Path: "lib/", Mode: 0o700}}, top)))
	b := mustPull(t, s, r.PushSpec("b:v1", spec([]image.File{{Path: "usr/"}, {Path: "lib", Link: "usr"}}, top)))
	if a.Layers[0] == b.Layers[0] {
		t.Fatal("the layer is shared")
	}
	if got := tree(t, mountOverlay(t, b.Layers)); !strings.Contains(got, "usr/x = 1") {
		t.Errorf("over a link the image shows\n%s", got)
	}
	if got := tree(t, mountOverlay(t, a.Layers)); !strings.Contains(got, "drwx------ lib\n") {
		t.Errorf("over a directory the image shows\n%s", got)
	}
}

func TestRepeatedLayerIsMountedOnce(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	same := []image.File{text("f", "1")}
	img := mustPull(t, s, r.PushSpec("a:v1", spec(same, []image.File{text("g", "2")}, same)))
	if len(img.Layers) != 2 {
		t.Errorf("layers are %v", img.Layers)
	}
	mountOverlay(t, img.Layers)
}

func TestIndexGivesThisPlatform(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	index := v1.ImageIndex(empty.Index)
	for _, arch := range []string{"arm64", "amd64", "s390x"} {
		one := spec([]image.File{text("arch", arch)})
		one.Architecture = arch
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: registry.Build(t, one),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	img := mustPull(t, s, r.PushIndex("multi:v1", index))
	if got := tree(t, img.Layers[0]); got != "-rw-r--r-- arch = "+platform.Architecture+"\n" {
		t.Errorf("image holds %q", got)
	}
	if digest, _ := index.Digest(); img.Digest != digest.String() {
		t.Errorf("digest is %s, want the index's %s", img.Digest, digest)
	}
}

func TestOtherPlatformIsRefused(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	foreign := spec([]image.File{text("f", "x")})
	foreign.Architecture = "s390x"
	img := registry.Build(t, foreign)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img,
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
	for _, ref := range []string{r.Push("plain:v1", img), r.PushIndex("index:v1", index)} {
		_, err := s.Pull(context.Background(), ref, PullOptions{})
		if !errors.Is(err, ErrPlatform) || !errors.Is(err, ErrPull) {
			t.Errorf("pull of %s says %v", ref, err)
		}
	}
	storeIsEmpty(t, s)
}

func TestPullErrorsNameTheReason(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	for ref, want := range map[string]string{
		r.Ref("absent:v1"):      "NAME_UNKNOWN",
		r.Ref("a:v9"):           "MANIFEST_UNKNOWN",
		"127.0.0.1:1/a:v1":      "connection refused",
		r.Ref("A B"):            "invalid reference format",
		r.Ref("a@sha256:short"): "invalid reference format",
		"":                      "invalid reference format",
	} {
		_, err := s.Pull(context.Background(), ref, PullOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pull of %q says %v, want %q in it", ref, err, want)
		}
	}
	storeIsEmpty(t, s)
}

func TestReason(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	_, absent := s.Pull(context.Background(), r.Ref("absent:v1"), PullOptions{})
	_, invalid := s.Pull(context.Background(), "UPPER", PullOptions{})
	_, never := s.Require(r.Ref("absent:v1"))
	for want, err := range map[string]error{"": nil, "ErrImagePull": absent, "InvalidImageName": invalid, "ErrImageNeverPull": never} {
		if got := Reason(err); got != want {
			t.Errorf("reason of %v is %q, want %q", err, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	r.RequireAuth("ann", "secret")
	ref := r.PushSpec("private/a:v1", spec([]image.File{text("f", "x")}))
	config := func(host, user, password string) []byte {
		return []byte(`{"auths":{"` + host + `":{"username":"` + user + `","password":"` + password + `"}}}`)
	}
	legacy := []byte(`{"` + r.Host + `":{"username":"ann","password":"secret"}}`)
	for name, c := range map[string]struct {
		payloads [][]byte
		ok       bool
	}{
		"none":                     {nil, false},
		"right":                    {[][]byte{config(r.Host, "ann", "secret")}, true},
		"legacy":                   {[][]byte{legacy}, true},
		"wrong":                    {[][]byte{config(r.Host, "ann", "guess")}, false},
		"other host":               {[][]byte{config("127.0.0.1:1", "ann", "secret")}, false},
		"repository":               {[][]byte{config(r.Host+"/private", "ann", "secret")}, true},
		"other repository":         {[][]byte{config(r.Host+"/public", "ann", "secret")}, false},
		"old one first, then new":  {[][]byte{config(r.Host+"/private", "ann", "old"), config(r.Host, "ann", "secret")}, true},
		"two of one host, rotated": {[][]byte{config(r.Host, "ann", "old"), config(r.Host, "ann", "secret")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := NewKeychain(c.payloads...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Pull(context.Background(), ref, PullOptions{Auth: keys})
			if (err == nil) != c.ok {
				t.Errorf("pull says %v, want success %v", err, c.ok)
			}
			if err != nil && !strings.Contains(err.Error(), "UNAUTHORIZED") {
				t.Errorf("pull says %v, want the registry's reason", err)
			}
		})
	}
}

// Public registries hand out tokens instead of taking the password with every request.
func TestTokenRegistry(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		user, password, _ := req.BasicAuth()
		switch {
		case req.URL.Path == "/token" && user == "ann" && password == "secret":
			fmt.Fprint(w, `{"token":"granted"}`)
			return false
		case req.URL.Path == "/token" || req.Header.Get("Authorization") != "Bearer granted":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return false
		}
		return true
	})
	if _, err := s.Pull(context.Background(), ref, PullOptions{}); !errors.Is(err, ErrPull) {
		t.Errorf("without credentials: %v", err)
	}
	keys, err := NewKeychain([]byte(`{"auths":{"` + r.Host + `":{"auth":"YW5uOnNlY3JldA=="}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pull(context.Background(), ref, PullOptions{Auth: keys}); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

func TestZstdLayer(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	archive, err := image.Archive(text("f", strings.Repeat("content ", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd))
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(registry.Build(t, spec([]image.File{text("base", "x")})), layer)
	if err != nil {
		t.Fatal(err)
	}
	got := mustPull(t, s, r.Push("a:v1", img))
	if content := tree(t, got.Layers[0]); content != "-rw-r--r-- f = "+strings.Repeat("content ", 1000)+"\n" {
		t.Errorf("layer holds %.60q", content)
	}
}

func TestBrokenPullSecretIsRefusedWithoutShowingIt(t *testing.T) {
	_, err := NewKeychain([]byte(`{"auths": "hunter2`))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("keychain says %v", err)
	}
}

func TestPullsOfOneReferenceShareTheTransfer(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	release := make(chan struct{})
	r.Intercept(func(http.ResponseWriter, *http.Request) bool { <-release; return true })
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range 8 {
		wg.Go(func() {
			if _, err := s.Pull(context.Background(), ref, PullOptions{Progress: func(Progress) {}}); err != nil {
				failed.Add(1)
			}
		})
	}
	waitFor(t, func() bool { return listeners(s) == 8 })
	close(release)
	wg.Wait()
	if n := r.Requests("GET /v2/a/manifests"); n != 1 || failed.Load() > 0 {
		t.Errorf("%d manifest requests, %d failures for 8 pulls", n, failed.Load())
	}
}

func listeners(s *Store) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		f.mu.Lock()
		n += len(f.listeners)
		f.mu.Unlock()
	}
	return n
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited 10 s in vain")
}

func TestWaiterGoesOnWhenThePullerGivesUp(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.PushSpec("a:v1", spec([]image.File{text("f", "x")}))
	var stuck atomic.Bool
	stuck.Store(true)
	r.Intercept(func(_ http.ResponseWriter, req *http.Request) bool {
		if stuck.Load() && strings.Contains(req.URL.Path, "/manifests/") {
			<-req.Context().Done()
			return false
		}
		return true
	})
	first, giveUp := context.WithCancel(context.Background())
	results := make(chan error, 2)
	pull := func(ctx context.Context) {
		_, err := s.Pull(ctx, ref, PullOptions{Progress: func(Progress) {}})
		results <- err
	}
	go pull(first)
	waitFor(t, func() bool { return listeners(s) == 1 })
	go pull(context.Background())
	waitFor(t, func() bool { return listeners(s) == 2 })
	stuck.Store(false)
	giveUp()
	one, two := <-results, <-results
	if one == nil {
		one, two = two, one
	}
	if !errors.Is(one, context.Canceled) || two != nil {
		t.Errorf("pulls say %v and %v, want one cancelled and one success", one, two)
	}
}

func TestStalledPullEndsAndBlocksNoOther(t *testing.T) {
	r := registry.Start(t)
	s := openTest(t, WithNoProgressLimit(300*time.Millisecond))
	slow := r.Push("slow:v1", registry.DemoImage(t, "v1"))
	quick := r.PushSpec("quick:v1", spec([]image.File{text("f", "x")}))
	var blobs atomic.Int32
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		// The first blob is the config, the second the first layer.
		if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/slow/blobs/") && blobs.Add(1) > 1 {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-req.Context().Done()
			return false
		}
		return true
	})
	stalled := make(chan error, 1)
	go func() {
		_, err := s.Pull(context.Background(), slow, PullOptions{})
		stalled <- err
	}()
	mustPull(t, s, quick)
	if err := <-stalled; !errors.Is(err, ErrStalled) || !errors.Is(err, ErrPull) {
		t.Errorf("stalled pull says %v", err)
	}
	if _, ok := s.Lookup(slow); ok {
		t.Error("a stalled pull left an image")
	}
}

// One of several layers that are fetched side by side fails: the pull ends at once, though others would wait for ever.
func TestFailingLayerEndsThePull(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	var layers [][]image.File
	for i := range 6 {
		layers = append(layers, []image.File{text(fmt.Sprint("f", i), fmt.Sprint(i))})
	}
	img := registry.Build(t, spec(layers...))
	ref := r.Push("a:v1", img)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		switch {
		case strings.HasSuffix(req.URL.Path, manifest.Layers[1].Digest.String()):
			http.Error(w, `{"errors":[{"code":"BLOB_UNKNOWN"}]}`, http.StatusNotFound)
			return false
		case strings.HasSuffix(req.URL.Path, manifest.Layers[2].Digest.String()):
			<-req.Context().Done()
			return false
		}
		return true
	})
	start := time.Now()
	_, err = s.Pull(context.Background(), ref, PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "BLOB_UNKNOWN") || time.Since(start) > 20*time.Second {
		t.Errorf("pull says %v after %v", err, time.Since(start))
	}
	storeIsEmpty(t, s)
	r.Intercept(nil)
	if got := mustPull(t, s, ref); len(got.Layers) != 6 || len(tree(t, mountOverlay(t, got.Layers))) == 0 {
		t.Errorf("image has layers %v", got.Layers)
	}
}

func TestDamagedBlobIsRefused(t *testing.T) {
	r, s := registry.Start(t), openTest(t)
	ref := r.Push("a:v1", registry.DemoImage(t, "v1"))
	r.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/") {
			w.Write([]byte("not what the manifest names"))
			return false
		}
		return true
	})
	if _, err := s.Pull(context.Background(), ref, PullOptions{}); !errors.Is(err, ErrPull) {
		t.Errorf("pull of damaged blobs says %v", err)
	}
	storeIsEmpty(t, s)
}
