package apiserver

import (
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestLongListsAreCompressed compares what clients that take gzip read with what others do, for a short and a long list in both formats.
func TestLongListsAreCompressed(t *testing.T) {
	f := newFixture(t)
	config := f.listen(t)
	payload := func() string { return fmt.Sprintf("%0200d", rand.Int63()) }
	for i := range 600 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i)}, Data: map[string]string{"a": payload()}}
		if _, err := f.admin.CoreV1().ConfigMaps("default").Create(f.ctx, object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for path, long := range map[string]bool{"/api/v1/namespaces/default/configmaps": true, "/api/v1/namespaces/default/configmaps?limit=2": false,
			"/api/v1/namespaces/default/configmaps/c1": false, "/api/v1/namespaces/default/nothing": false} {
			plain, _ := ask(t, config, path, accept, true)
			zipped, encoded := ask(t, config, path, accept, false)
			if plain != zipped || len(plain) == 0 {
				t.Errorf("%s as %s: %d bytes as they are, %d bytes unpacked differ", path, accept, len(plain), len(zipped))
			}
			if encoded != long {
				t.Errorf("%s as %s: compressed is %v", path, accept, encoded)
			}
		}
	}
}

// ask returns the body and whether it came compressed.
func ask(t *testing.T, config *rest.Config, path, accept string, plain bool) (string, bool) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.DisableCompression = plain
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest(http.MethodGet, config.Host+path, nil)
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp.Uncompressed
}
