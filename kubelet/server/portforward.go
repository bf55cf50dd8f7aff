package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	gort "runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// dialLimit bounds the connect to a port inside a pod.
const dialLimit = 10 * time.Second

func (s *server) portForward(w http.ResponseWriter, r *http.Request) {
	p, no := s.findPod(r)
	if no == nil && !isUpgrade(r) {
		no = &refusal{http.StatusBadRequest, "this request must be upgraded to a stream (SPDY or WebSocket)"}
	}
	if no != nil {
		no.write(w)
		return
	}
	o, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(s.Context, cancel)()
	portforward.ServePortForward(&hijacked{ResponseWriter: w, gone: cancel}, r.WithContext(ctx), forwarder{s}, p.Name, string(p.UID), o,
		idleLimit, creationLimit, portforward.SupportedProtocols)
}

type forwarder struct{ *server }

// PortForward implements portforward.PortForwarder: it connects stream with a port of the pod's own loopback.
func (f forwarder) PortForward(ctx context.Context, name, uid string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	conn, err := f.dial(ctx, uid, port)
	if err != nil {
		return fmt.Errorf("cannot forward to port %d of pod %s: %w", port, name, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	g := f.group(ctx, "port-forward")
	g.Go("to pod", func(context.Context) error {
		_, err := io.Copy(conn, stream)
		if t, ok := conn.(*net.TCPConn); ok {
			_ = t.CloseWrite()
		}
		return err
	})
	_, err = io.Copy(stream, conn)
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		err = nil // one connection's end is not the forward's
	}
	stream.Close()
	g.Cancel()
	return err
}

// dial connects to port on the loopback of the pod's network namespace.
func (f forwarder) dial(ctx context.Context, uid string, port int32) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	records, err := f.Runtime.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Spec.PodUID == uid {
			return f.dialIn(ctx, r.Sandbox.NetNS, port)
		}
	}
	return nil, errors.New("the pod has no sandbox")
}

func (f forwarder) dialIn(ctx context.Context, netns string, port int32) (conn net.Conn, err error) {
	d := net.Dialer{FallbackDelay: -1}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	if netns == "" {
		return d.DialContext(ctx, "tcp4", addr)
	}
	g := f.group(ctx, "dial")
	g.Go("dial", func(ctx context.Context) error {
		gort.LockOSThread() // never unlocked: the thread has left the host's network and ends with this goroutine
		fd, e := unix.Open(netns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if e != nil {
			return fmt.Errorf("cannot open the pod's network: %w", e)
		}
		defer unix.Close(fd)
		if e := unix.Setns(fd, unix.CLONE_NEWNET); e != nil {
			return fmt.Errorf("cannot enter the pod's network: %w", e)
		}
		conn, e = d.DialContext(ctx, "tcp4", addr)
		return e
	})
	err = g.Wait()
	return conn, err
}
