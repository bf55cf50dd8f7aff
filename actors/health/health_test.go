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

// TestNotesFailNothing: what readers need not care for is told, with its reason, and the node stays ready.
func TestNotesFailNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := system(t)
		var full error
		h := New(Config{System: s, Root: "node", Store: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)})
		h.Note("store-writes", func() error { return full })
		want(t, h, "/readyz?verbose", http.StatusOK, "[+]store-writes ok")
		full = errors.New("it is full")
		want(t, h, "/readyz?verbose", http.StatusOK, "[~]store-writes: it is full", "readyz check passed")
		if _, body := ask(h, "/readyz"); body != "ok" {
			t.Errorf("a note changes the plain answer: %s", body)
		}
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
