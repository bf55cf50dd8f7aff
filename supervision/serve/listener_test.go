package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
	"github.com/nodeactor/nodeactor/supervision/catalog"
	"github.com/nodeactor/nodeactor/supervision/core"
	"github.com/nodeactor/nodeactor/test/loopback"
)

// neverAnswers accepts connections and leaves them alone, whatever its context says.
func neverAnswers(l net.Listener) {
	for {
		if _, err := l.Accept(); err != nil {
			select {} // not even the end of its socket ends it
		}
	}
}

func answers(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	return HTTP(ctx, srv, l, time.Millisecond, slog.New(slog.DiscardHandler))
}

// TestListenerThatNeverAnswers: a listener that accepts and never answers is a Hang whose stack shows it; it is left behind, and the next
// generation has the same port and answers.
func TestListenerThatNeverAnswers(t *testing.T) {
	addr := loopback.Free(t)
	var lives atomic.Int32
	s := run(t, Config{
		Network: "tcp", Addr: addr, Probe: HTTPProbe(nil, "/"), ProbeEvery: 20 * time.Millisecond, ProbeWithin: 300 * time.Millisecond,
		Serve: func(ctx context.Context, l net.Listener) error {
			if lives.Add(1) == 1 {
				neverAnswers(l)
			}
			return answers(ctx, l)
		},
	})
	await(t, "the next generation answers", func() bool {
		n := s.Inspect().Root.Children[0]
		return n.Generation == 2 && n.State == core.Running
	})
	resp, err := http.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	faults := s.Faults().Recent()
	if len(faults) != 1 || faults[0].Kind != core.Hang || faults[0].Message != "job serve" || !strings.Contains(string(faults[0].Stack), "neverAnswers") {
		t.Errorf("faults %+v", faults)
	}
}

// TestListenerIsReadyOnceItAnswers: a listener that is bound and does not answer yet does not run.
func TestListenerIsReadyOnceItAnswers(t *testing.T) {
	answer := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	started := make(chan error, 1)
	go func() {
		started <- s.Start(port(Config{
			Listen: func(context.Context, string, string) (net.Listener, error) { return l, nil },
			Serve:  serveUntil,
			Probe: func(ctx context.Context, _ net.Addr) error {
				select {
				case <-answer:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}))
	}()
	time.Sleep(100 * time.Millisecond)
	if n := s.Inspect().Root.Children[0]; n.State != core.Starting {
		t.Errorf("it is %s before it has answered", n.State)
	}
	close(answer)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	if n := s.Inspect().Root.Children[0]; n.State != core.Running {
		t.Errorf("it is %s when it has answered", n.State)
	}
}

func TestHTTPProbe(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer srv.Close()
	trust := srv.Client().Transport.(*http.Transport).TLSClientConfig
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for range 2 { // the second resumes the session of the first
		if err := HTTPProbe(trust, "/x")(ctx, srv.Listener.Addr()); err != nil {
			t.Error(err)
		}
	}
	if err := HTTPProbe(&tls.Config{MinVersion: tls.VersionTLS12}, "/x")(ctx, srv.Listener.Addr()); err == nil {
		t.Error("a stranger's certificate is an answer")
	}
	if got := Reachable(&net.TCPAddr{IP: net.IPv6zero, Port: 7}); got != "127.0.0.1:7" {
		t.Errorf("every address is called at %s", got)
	}
	path := t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}()
	if err := HTTPProbe(nil, "/")(ctx, l.Addr()); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := HTTPProbe(nil, "/")(ctx, l.Addr()); err == nil {
		t.Error("a closed socket is an answer")
	}
}

// two is a group of the product's rows: a listener and what must not feel its faults.
func two(cfg Config) supervision.Spec {
	root, listener, sibling := catalog.Row("listeners"), catalog.Row("listener"), catalog.Row("socket")
	listener.Start = func() supervision.Handler { return New(cfg) }
	sibling.Start = func() supervision.Handler {
		return supervision.HandlerFunc(func(supervision.Context, any) error { return nil })
	}
	root.Children = []supervision.Spec{listener, sibling}
	return root
}

// TestCheck09_Bind: a taken port is a BindFailure that names the holder; it is tried again under back-off, costs no budget and no sibling its
// life, holds up no start, and is served when it is free.
func TestCheck09_Bind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(two(Config{Network: "tcp", Addr: l.Addr().String(), Serve: answers, Probe: HTTPProbe(nil, "/")})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background()) })
	if n := s.Inspect().Root.Children[0]; n.State == core.Running {
		t.Error("it runs without its port")
	}
	await(t, "three attempts", func() bool { return len(s.Faults().Recent()) >= 3 })
	for _, f := range s.Faults().Recent() {
		if f.Kind != core.BindFailure || !strings.Contains(f.Err.Error(), fmt.Sprintf("(pid %d)", os.Getpid())) || !strings.Contains(f.Err.Error(), l.Addr().String()) {
			t.Errorf("fault %v", f)
		}
	}
	l.Close()
	freed := time.Now()
	await(t, "it is served", func() bool {
		resp, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	t.Logf("served %s after it was free", time.Since(freed).Round(time.Millisecond))
	for _, n := range s.Inspect().Root.Children[1:] {
		if n.Generation != 1 || n.State != core.Running {
			t.Errorf("sibling %s is %s in generation %d", n.Path, n.State, n.Generation)
		}
	}
}

// TestCheck09_BindInTime: whenever a port becomes free, it is served within a second, by the product's own back-off.
func TestCheck09_BindInTime(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Millisecond, time.Second, 7 * time.Second, 20 * time.Minute} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var served time.Time
				s, err := supervision.New(supervision.Config{Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				err = s.Start(two(Config{
					Listen: func(context.Context, string, string) (net.Listener, error) {
						if time.Since(begin) < after {
							return nil, syscall.EADDRINUSE
						}
						return &silent{end: make(chan struct{})}, nil
					},
					Serve: func(ctx context.Context, l net.Listener) error {
						served = time.Now()
						return serveUntil(ctx, l)
					},
				}))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(after + time.Second)
				synctest.Wait()
				if late := served.Sub(begin) - after; served.IsZero() || late > time.Second {
					t.Errorf("served %s after it was free", late)
				}
				if n := s.Inspect().Root.Children[1]; n.Generation != 1 {
					t.Errorf("the sibling is in generation %d", n.Generation)
				}
				s.Stop(context.Background())
			})
		})
	}
}

// silent is a listener without a network.
type silent struct {
	net.Listener
	end chan struct{}
}

func (s *silent) Close() error   { return nil }
func (s *silent) Addr() net.Addr { return &net.UnixAddr{Name: "silent", Net: "unix"} }
