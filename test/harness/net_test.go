package harness_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodeactor/nodeactor/test/harness"
)

// levels runs one test on each level with virtual time.
func levels(t *testing.T, f func(k *harness.Kit)) {
	t.Run("seeded", func(t *testing.T) { harness.Sim(t, f, harness.Seeds(50)) })
	t.Run("bubble", func(t *testing.T) { harness.Bubble(t, f) })
}

// echo serves connections until the listener is closed.
func echo(k *harness.Kit, l net.Listener) func(ctx context.Context) {
	return func(context.Context) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.Go("echo", func(context.Context) {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	}
}

// TestStream sends over a connection with delay, loss and a cut: all arrives, in order.
func TestStream(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		n := k.Net()
		n.Delay(time.Millisecond, 20*time.Millisecond)
		n.Drop(0.1)
		l, err := n.Host("server").Listen(80)
		if err != nil {
			k.Fatalf("%v", err)
		}
		k.Go("server", echo(k, l))
		var got string
		k.Go("client", func(ctx context.Context) {
			c, err := n.Host("client").Dial(ctx, "server:80")
			if err != nil {
				k.Errorf("%v", err)
				return
			}
			for i := range 20 {
				fmt.Fprintf(c, "%d,", i)
			}
			buf := make([]byte, 50)
			_, err = io.ReadFull(c, buf)
			got = fmt.Sprint(string(buf), err)
			c.Close()
		})
		n.Cut("client", "server")
		k.Advance(time.Minute)
		if got != "" {
			k.Errorf("%q passed a cut", got)
		}
		n.Heal("client", "server")
		k.Advance(time.Minute)
		if want := "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,<nil>"; got != want {
			k.Errorf("got %q, want %q", got, want)
		}
		l.Close()
	})
}

// TestStreamErrors holds what connections answer when something is wrong.
func TestStreamErrors(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		n := k.Net()
		a := n.Host("a")
		l, err := n.Host("b").Listen(1)
		if err != nil {
			k.Fatalf("%v", err)
		}
		if _, err := n.Host("b").Listen(1); !errors.Is(err, syscall.EADDRINUSE) {
			k.Errorf("a port can be had twice: %v", err)
		}
		if _, err := a.Dial(k.Context(), "b:2"); !errors.Is(err, syscall.ECONNREFUSED) {
			k.Errorf("dial where nobody listens: %v", err)
		}
		c, err := a.Dial(k.Context(), "b:1")
		if err != nil {
			k.Fatalf("%v", err)
		}
		before := k.Clock().Now()
		_ = c.SetReadDeadline(before.Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || k.Clock().Now().Sub(before) != time.Second {
			k.Errorf("read with a deadline: %v after %s", err, k.Clock().Now().Sub(before))
		}
		other, err := l.Accept()
		if err != nil {
			k.Fatalf("%v", err)
		}
		other.Close()
		_ = c.SetReadDeadline(time.Time{})
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			k.Errorf("read from a closed connection: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			k.Errorf("write to a closed connection: %v", err)
		}
		c.Close()
		l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			k.Errorf("accept on a closed listener: %v", err)
		}
	})
}

// TestPackets holds that packets pass, are lost over a cut, and that a swizzle heals.
func TestPackets(t *testing.T) {
	levels(t, func(k *harness.Kit) {
		n := k.Net()
		a, _ := n.Host("a").ListenPacket(7)
		b, _ := n.Host("b").ListenPacket(7)
		send := func(text string) {
			if _, err := a.WriteTo([]byte(text), b.LocalAddr()); err != nil {
				k.Errorf("%v", err)
			}
			k.Settle()
		}
		read := func() string {
			buf := make([]byte, 10)
			_ = b.SetReadDeadline(k.Clock().Now().Add(time.Second))
			got, _, err := b.ReadFrom(buf)
			if err != nil {
				return "lost"
			}
			return string(buf[:got])
		}
		send("one")
		first := read()
		n.Isolate("b")
		send("two")
		second := read()
		n.Rejoin("b")
		n.Swizzle(time.Minute)
		k.Advance(time.Minute)
		send("three")
		if third := read(); first != "one" || second != "lost" || third != "three" {
			k.Errorf("got %s, %s, %s", first, second, third)
		}
		a.Close()
		b.Close()
	})
}

// TestHTTP serves HTTP over the network in a bubble.
func TestHTTP(t *testing.T) {
	harness.Bubble(t, func(k *harness.Kit) {
		n := k.Net()
		n.Delay(time.Second, 2*time.Second)
		l, err := n.Host("server").Listen(80)
		if err != nil {
			k.Fatalf("%v", err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) })}
		k.Go("server", func(context.Context) { _ = srv.Serve(l) })
		transport := &http.Transport{DialContext: n.Host("client").DialContext}
		before := k.Clock().Now()
		resp, err := (&http.Client{Transport: transport}).Get("http://server:80/")
		if err != nil {
			k.Fatalf("%v", err)
		}
		body, err := io.ReadAll(resp.Body)
		if took := k.Clock().Now().Sub(before); err != nil || len(body) != 1<<20 || took < 3*time.Second {
			k.Errorf("%d bytes after %s: %v", len(body), took, err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		_ = srv.Close()
	})
}
