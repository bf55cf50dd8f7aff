package health

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/serve"
)

// deadEnd is a listener without a network.
type deadEnd struct{ net.Listener }

func (deadEnd) Close() error   { return nil }
func (deadEnd) Addr() net.Addr { return &net.TCPAddr{} }

// TestPortIsReadyWhileItAnswers: a node whose port was never bound is not ready, and neither is one whose port stopped to answer.
func TestPortIsReadyWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken, deaf atomic.Bool
		taken.Store(true)
		s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		listener := catalog.Row("listener")
		listener.Start = func() supervision.Handler {
			return serve.New(serve.Config{
				Addr: "127.0.0.1:1",
				Listen: func(context.Context, string, string) (net.Listener, error) {
					if taken.Load() {
						return nil, syscall.EADDRINUSE
					}
					return deadEnd{}, nil
				},
				Serve: func(ctx context.Context, _ net.Listener) error { <-ctx.Done(); return ctx.Err() },
				Probe: func(ctx context.Context, _ net.Addr) error {
					if deaf.Load() {
						return errors.New("no answer")
					}
					return nil
				},
			})
		}
		root := catalog.Row("listeners")
		root.Children = []supervision.Spec{listener}
		if err := s.Start(root); err != nil {
			t.Fatal(err)
		}
		h := New(Config{System: s, Root: "listeners", Store: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler)})
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			want(t, h, "/readyz", http.StatusInternalServerError, "[-]listener failed")
		}
		taken.Store(false)
		time.Sleep(time.Second)
		for range 60 {
			time.Sleep(time.Second)
			want(t, h, "/readyz", http.StatusOK, "ok")
		}
		deaf.Store(true)
		time.Sleep(unansweredAfter + time.Second)
		want(t, h, "/readyz", http.StatusInternalServerError, "[-]listener failed")
		want(t, h, "/livez", http.StatusInternalServerError, "[-]listener failed")
		deaf.Store(false)
		time.Sleep(time.Second)
		want(t, h, "/readyz", http.StatusOK, "ok")
		s.Stop(context.Background())
	})
}
