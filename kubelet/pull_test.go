package kubelet

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// testRegistry serves one busybox image, to those who know the password if there is one.
type testRegistry struct {
	*httptest.Server
	blobs    map[string][]byte
	manifest []byte
	password string
	layers   atomic.Int64 // downloads of the layer
}

func newTestRegistry(t *testing.T, password string) *testRegistry {
	t.Helper()
	r := &testRegistry{blobs: map[string][]byte{}, password: password}
	layer := busyboxLayer(t)
	config, _ := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer)}}})
	r.blobs[digestOf(layer)], r.blobs[digestOf(config)] = layer, config
	entry := func(kind string, b []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(b), "digest": digestOf(b)}
	}
	r.manifest, _ = json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": entry("application/vnd.oci.image.config.v1+json", config), "layers": []any{entry("application/vnd.oci.image.layer.v1.tar", layer)}})
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *testRegistry) ref() string { return strings.TrimPrefix(r.URL, "http://") + "/busybox:1" }

// ServeHTTP speaks as much of the distribution protocol as a pull needs.
func (r *testRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if _, p, _ := req.BasicAuth(); r.password != "" && p != r.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	switch {
	case req.URL.Path == "/v2/":
	case strings.Contains(req.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", digestOf(r.manifest))
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.manifest))
	case r.blobs[name] != nil:
		if len(r.blobs[name]) > 100000 && req.Method == http.MethodGet {
			r.layers.Add(1)
		}
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(r.blobs[name]))
	default:
		http.NotFound(w, req)
	}
}

func busyboxLayer(t testing.TB) []byte {
	return tarOf(t, func(w *tar.Writer) {
		bin, err := os.ReadFile(busybox(t))
		if err != nil {
			t.Fatal(err)
		}
		add(t, w, tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
		add(t, w, tar.Header{Name: "bin/busybox", Mode: 0o755}, bin)
		for _, link := range []string{"sh", "sleep"} {
			add(t, w, tar.Header{Name: "bin/" + link, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
		}
	})
}

func TestPodsOfOneImageSharePulls(t *testing.T) {
	h := newHost(t, nil)
	r := newTestRegistry(t, "")
	for i := range 3 {
		p := shell(fmt.Sprintf("pull%d", i), "exec sleep 1000")
		p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = r.ref(), v1.PullAlways
		h.create(p)
	}
	for i := range 3 {
		p := h.running(fmt.Sprintf("pull%d", i))
		if s := status(p, "main"); !strings.Contains(s.ImageID, digestOf(r.manifest)) {
			t.Errorf("image ID %s", s.ImageID)
		}
	}
	if n := r.layers.Load(); n != 1 {
		t.Errorf("the layer was downloaded %d times", n)
	}
	if e := h.events("pull0"); !strings.Contains(e, "Pulling image") || !strings.Contains(e, "Successfully pulled image") {
		h.eventually("pulls are told in Events", func() bool { return strings.Contains(h.events("pull0"), "Successfully pulled image") })
	}
}

func TestPullSecrets(t *testing.T) {
	h := newHost(t, nil)
	r := newTestRegistry(t, "open sesame")
	host := strings.TrimPrefix(r.URL, "http://")
	config, _ := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{"username": "u", "password": "open sesame"}}})
	_, err := h.api.CoreV1().Secrets("default").Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Type: v1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{v1.DockerConfigJsonKey: config}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := shell("without", "exec sleep 1000")
	p.Spec.Containers[0].Image = r.ref()
	h.create(p)
	h.wait("without", "refused", func(p *v1.Pod) bool {
		s := status(p, "main")
		return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff" && strings.Contains(s.State.Waiting.Message, "ErrImagePull")
	})
	p = shell("with", "exec sleep 1000")
	p.Spec.Containers[0].Image = r.ref()
	p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "absent"}, {Name: "pull"}}
	h.create(p)
	h.running("with")
}
