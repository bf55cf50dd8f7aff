package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a connection that keeps what is written to it.
type recorder struct {
	net.Conn
	wrote  []string
	err    error
	closed bool
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	r.wrote = append(r.wrote, string(b))
	return len(b), nil
}

func (r *recorder) Close() error { r.closed = true; return nil }

func wrote(t *testing.T, r *recorder, want ...string) {
	t.Helper()
	if got := strings.Join(r.wrote, "|"); got != strings.Join(want, "|") {
		t.Fatalf("written are %q, want %q", got, want)
	}
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := io.WriteString(c, s); n != len(s) || err != nil {
		t.Fatalf("write of %d: %d, %v", len(s), n, err)
	}
}

// TestSmallWritesWaitForTheNext: a small write goes out with the next one, whatever its size, or by itself after a moment; a large one at once.
func TestSmallWritesWaitForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		c := newCork(r)
		large := strings.Repeat("x", smallRecord+1)
		write(t, c, large)
		wrote(t, r, large)
		write(t, c, "head ")
		wrote(t, r, large)
		write(t, c, large)
		wrote(t, r, large, "head "+large)
		write(t, c, "a")
		write(t, c, "b")
		wrote(t, r, large, "head "+large, "ab")
		write(t, c, "alone")
		time.Sleep(holdWithin)
		synctest.Wait()
		wrote(t, r, large, "head "+large, "ab", "alone")
		time.Sleep(time.Hour)
		wrote(t, r, large, "head "+large, "ab", "alone")
		write(t, c, "last")
		if err := c.Close(); err != nil || !r.closed {
			t.Fatal(err)
		}
		wrote(t, r, large, "head "+large, "ab", "alone", "last")
	})
}

// TestALostWriteIsToldOfTheNext: what was reported as written and was not fails the next write.
func TestALostWriteIsToldOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		r := &recorder{err: broken}
		c := newCork(r)
		write(t, c, "head")
		time.Sleep(holdWithin)
		synctest.Wait()
		for range 2 {
			if n, err := c.Write([]byte("body")); n != 0 || !errors.Is(err, broken) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		c = newCork(r)
		write(t, c, "head")
		if n, err := c.Write([]byte("body")); n != 0 || !errors.Is(err, broken) {
			t.Fatalf("%d, %v", n, err)
		}
		c.Close()
		wrote(t, r)
	})
}

// counting counts the writes of the connections it accepts.
type counting struct {
	net.Listener
	writes *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.writes}, err
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestAnAnswerIsOneWrite: the server of HTTP/2 writes the headers and the body of an answer to the system apart; corked, together.
func TestAnAnswerIsOneWrite(t *testing.T) {
	plain := writesOfAnswers(t, func(l net.Listener) net.Listener { return l })
	together := writesOfAnswers(t, func(l net.Listener) net.Listener { return corked{l} })
	t.Logf("%.2f writes for an answer, corked %.2f", plain, together)
	// A machine that is busy may let a moment pass between the two.
	if together > 1.5 {
		t.Errorf("%.2f writes for a corked answer", together)
	}
	if plain < 1.5 {
		t.Errorf("%.2f writes for an answer as it is: corking is of no use any more", plain)
	}
}

// writesOfAnswers is how many writes an answer takes whose handler sets a header, as those of the API do.
func writesOfAnswers(t *testing.T, wrap func(net.Listener) net.Listener) float64 {
	t.Helper()
	const requests = 200
	body := strings.Repeat("answer ", 200)
	var writes atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Audit-Id", "x")
		_, _ = io.WriteString(w, body)
	}))
	srv.Listener = wrap(counting{srv.Listener, &writes})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	before := int64(0)
	for range 1 + requests { // the first one also opens the connection
		resp, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != body || resp.ProtoMajor != 2 {
			t.Fatalf("%d bytes over HTTP/%d: %v", len(got), resp.ProtoMajor, err)
		}
		if before == 0 {
			before = writes.Load()
		}
	}
	return float64(writes.Load()-before) / requests
}

// TestServedOverTLSIsCorked: a client gets everything, also what comes alone and late.
func TestServedOverTLSIsCorked(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w)
		for _, part := range []string{"a", "b", "c"} {
			if r.URL.Path == "/headers" {
				_ = flush.Flush() // alone: nothing follows before the client has read them
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, part)
			_ = flush.Flush()
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS() // for its certificate
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- HTTP(ctx, &http.Server{Handler: srv.Config.Handler, TLSConfig: srv.TLS, ReadHeaderTimeout: time.Second}, l, time.Second, slog.New(slog.DiscardHandler))
	}()
	for _, path := range []string{"/parts", "/headers"} {
		resp, err := srv.Client().Get("https://" + l.Addr().String() + path)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v", path, err)
		}
		if path == "/parts" {
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "abc" {
				t.Errorf("read %q: %v", got, err)
			}
		}
		resp.Body.Close()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestCloseEndsABlockedWrite: whoever closes a connection does not wait for a client that reads nothing.
func TestCloseEndsABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := newCork(ours)
		ended := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, strings.Repeat("x", smallRecord+1))
			ended <- err
		}()
		synctest.Wait()
		if err := c.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("a write to nobody was taken for done")
		}
	})
}

// TestFarewellIsWritten: what is held is written before a deadline that leaves no time for it, which is how TLS ends a connection.
func TestFarewellIsWritten(t *testing.T) {
	r := &recorder{}
	c := newCork(deadlined{r})
	write(t, c, "farewell")
	if err := c.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	wrote(t, r, "farewell")
}

// deadlined is a recorder on which nothing can be written any more once it has a deadline.
type deadlined struct{ *recorder }

func (d deadlined) SetWriteDeadline(time.Time) error {
	d.err = context.DeadlineExceeded
	return nil
}
