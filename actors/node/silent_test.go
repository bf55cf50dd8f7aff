package node

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/nodeactor/nodeactor/cluster/identity"
)

// oneConn is a listener with one connection.
type oneConn struct {
	conns chan net.Conn
	ended chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { close(l.ended); return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// TestSilentClientsAreLeft: the connection of a client that went away without a word is closed, so that its watches end; that of one that
// answers is kept, however little is said.
func TestSilentClientsAreLeft(t *testing.T) {
	outside := time.Now()
	now := func() time.Time { return outside } // inside it is another year
	id, err := identity.Load(filepath.Join(t.TempDir(), "pki"), identity.WithNow(now))
	if err != nil {
		t.Fatal(err)
	}
	server, err := id.ServerTLS(identity.APIServerHosts("n", nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, answers := range map[string]bool{"gone": false, "there": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				l := &oneConn{conns: make(chan net.Conn, 1), ended: make(chan struct{})}
				l.conns <- far
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() {
					served <- (&parts{log: slog.New(slog.DiscardHandler)}).serveHTTP(ctx, l, server, http.NotFoundHandler())
				}()
				client := tls.Client(near, &tls.Config{RootCAs: id.CAPool(), ServerName: "localhost", NextProtos: []string{"h2"}, Time: now})
				left := make(chan time.Duration, 1)
				go func() { left <- converse(client, answers) }()
				time.Sleep(pingAfter + pingTimeout + time.Second)
				synctest.Wait()
				select {
				case after := <-left:
					if answers || after < pingAfter {
						t.Errorf("it was left after %s", after)
					}
				default:
					if !answers {
						t.Error("it is still waited for")
					}
				}
				near.Close()
				stop()
				<-served
				time.Sleep(time.Minute) // the server looks now and then whether its connections have ended
			})
		})
	}
}

// converse is a client of HTTP/2 that reads, and says nothing but what it must and, if it answers, that it is there. It returns how long it was
// listened to.
func converse(c net.Conn, answers bool) time.Duration {
	begin := time.Now()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return 0
	}
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings()
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return time.Since(begin)
		}
		if p, ok := f.(*http2.PingFrame); ok && answers {
			_ = framer.WritePing(true, p.Data)
		}
	}
}
