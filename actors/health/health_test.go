package health

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
)

// system runs one worker below a root; messages are functions.
func system(t *testing.T) *supervision.System {
	t.Helper()
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	worker := catalog.Row("scheduler")
	worker.Start = func() supervision.Handler {
		return supervision.HandlerFunc(func(ctx supervision.Context, msg any) error {
			if f, ok := msg.(func()); ok {
				f()
			}
			return nil
		})
	}
	root := catalog.Row("node")
	root.Children = []supervision.Spec{worker}
	if err := s.Start(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	return s
}

func ask(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func want(t *testing.T, h http.Handler, path string, code int, parts ...string) {
	t.Helper()
	got, body := ask(h, path)
	if got != code {
		t.Errorf("%s answers %d, want %d: %s", path, got, code, body)
	}
	for _, p := range parts {
		if !strings.Contains(body, p) {
			t.Errorf("%s lacks %q: %s", path, p, body)
		}
	}
}

func TestVerdictsAreReadFromTheTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := system(t)
		var storeErr error
		h := New(Config{System: s, Root: "node", Store: func(context.Context) error { return storeErr }, Log: slog.New(slog.DiscardHandler)})
		want(t, h, "/livez", http.StatusOK, "ok")
		want(t, h, "/readyz?verbose", http.StatusOK, "[+]store ok", "[+]scheduler ok", "[+]shutdown ok", "readyz check passed")

		release := make(chan bool)
		s.Send(s.Ref("node/scheduler"), func() { <-release })
		time.Sleep(stalledAfter + time.Second)
		want(t, h, "/livez", http.StatusInternalServerError, "[-]scheduler failed: reason withheld", "livez check failed")
		want(t, h, "/readyz", http.StatusOK, "ok")
		close(release)
		synctest.Wait()
		want(t, h, "/livez", http.StatusOK, "ok")

		storeErr = errors.New("secret reason")
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]store failed")
		if _, body := ask(h, "/readyz"); strings.Contains(body, "secret") {
			t.Error("the reason is not withheld")
		}
		storeErr = nil
		h.Drain()
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]shutdown failed")
		want(t, h, "/livez", http.StatusOK, "ok")
		s.Stop(context.Background())
	})
}

func TestNoChildrenIsNotHealth(t *testing.T) {
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{System: s, Root: "node", Store: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)})
	want(t, h, "/livez", http.StatusInternalServerError, "[-]children failed")
}

type facts struct{}

func (facts) Revision() int64        { return 42 }
func (facts) Counts() map[string]int { return map[string]int{"pods": 3} }

func TestMetricsShowTreeAndStore(t *testing.T) {
	s := system(t)
	c := &Collector{System: s, Root: "node", Facts: func() StoreFacts { return facts{} }}
	s.Send(s.Ref("node/scheduler"), func() { panic("counted") })
	deadline := time.Now().Add(5 * time.Second)
	for len(s.Faults().Recent()) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	expected := `
# HELP etcd_object_counts Stored objects by resource.
# TYPE etcd_object_counts gauge
etcd_object_counts{resource="pods"} 3
# HELP nodeactor_faults_total Faults of supervised children.
# TYPE nodeactor_faults_total counter
nodeactor_faults_total{kind="Panic",path="scheduler"} 1
# HELP nodeactor_store_revision Newest revision of the store.
# TYPE nodeactor_store_revision gauge
nodeactor_store_revision 42
`
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(expected), "etcd_object_counts", "nodeactor_faults_total", "nodeactor_store_revision"); err != nil {
		t.Error(err)
	}
	if got := family("controllers/deployment/manifests/default:web"); got != "controllers/deployment/manifests" {
		t.Errorf("family is %s", got)
	}
}
