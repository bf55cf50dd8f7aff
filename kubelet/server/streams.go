package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/nodeactor/nodeactor/kubelet/runtime"
)

// Limits of streams.
const (
	// idleLimit closes a stream on which nothing has moved for this long.
	idleLimit = 4 * time.Hour
	// creationLimit is how long a client may take to open its streams.
	creationLimit = 30 * time.Second
	// keepAlive notices clients that vanished without a word.
	keepAlive = 30 * time.Second
	// exitedByKill is the exit code told when the container went while a command ran in it.
	exitedByKill = 137
)

func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		http.Error(w, "you must specify at least 1 command", http.StatusBadRequest)
		return
	}
	s.stream(w, r, func(w http.ResponseWriter, r *http.Request, t target, id string, o *remotecommand.Options) {
		if wantsV5(r) {
			s.serveV5(w, r, o, func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, resize <-chan remotecommand.TerminalSize) error {
				return streamer{s, t}.ExecInContainer(ctx, t.pod.Name, string(t.pod.UID), id, command, in, out, errOut, o.TTY, resize, 0)
			})
			return
		}
		remotecommand.ServeExec(w, r, streamer{s, t}, t.pod.Name, string(t.pod.UID), id, command, o, idleLimit, creationLimit, remotecommand.SupportedStreamingProtocols)
	})
}

func (s *server) attach(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, func(w http.ResponseWriter, r *http.Request, t target, id string, o *remotecommand.Options) {
		if wantsV5(r) {
			s.serveV5(w, r, o, func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, resize <-chan remotecommand.TerminalSize) error {
				return streamer{s, t}.AttachContainer(ctx, t.pod.Name, string(t.pod.UID), id, in, out, errOut, o.TTY, resize)
			})
			return
		}
		remotecommand.ServeAttach(w, r, streamer{s, t}, t.pod.Name, string(t.pod.UID), id, o, idleLimit, creationLimit, remotecommand.SupportedStreamingProtocols)
	})
}

// stream checks what all streams to a container have in common, then serves one until the client, the container or the
// server ends.
func (s *server) stream(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request, target, string, *remotecommand.Options)) {
	t, no := s.find(r)
	if no == nil && !isUpgrade(r) {
		no = &refusal{http.StatusBadRequest, "this request must be upgraded to a stream (SPDY or WebSocket)"}
	}
	var id string
	if no == nil {
		id, no = t.running()
	}
	if no != nil {
		no.write(w)
		return
	}
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(s.Context, cancel)()
	serve(&hijacked{ResponseWriter: w, gone: cancel}, r.WithContext(ctx), t, id, o)
}

func isUpgrade(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// hijacked tells when the client's connection ends, which a taken-over connection otherwise tells nobody.
type hijacked struct {
	http.ResponseWriter
	gone func()
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if t, ok := underlying(c).(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive})
	}
	return &watchedConn{Conn: c, gone: h.gone}, rw, nil
}

// Flush implements http.Flusher.
func (h *hijacked) Flush() { _ = http.NewResponseController(h.ResponseWriter).Flush() }

func underlying(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

type watchedConn struct {
	net.Conn
	gone func()
}

// Read ends the stream when the client has gone.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.gone()
	}
	return n, err
}

// Close ends the stream.
func (c *watchedConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

// streamer carries streams between a client and a container.
type streamer struct {
	*server
	t target
}

// ExecInContainer implements remotecommand.Executor; container is an ID.
func (s streamer) ExecInContainer(ctx context.Context, _, podUID, container string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	spec := runtime.ExecSpec{Args: command, Tty: tty, Stdin: in}
	if out != nil {
		spec.Stdout = out
	}
	if errOut != nil {
		spec.Stderr = errOut
	}
	sizes, stop := s.sizes(ctx, resize)
	defer stop()
	spec.Resize = sizes
	code, err := s.Runtime.Exec(ctx, container, spec)
	select {
	case <-s.Pods.Ended(podUID, container):
		if err != nil {
			code, err = exitedByKill, nil
		}
	default:
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}

// AttachContainer implements remotecommand.Attacher; container is an ID.
func (s streamer) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errOut io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize) error {
	spec := runtime.AttachSpec{Stdin: in}
	if out != nil {
		spec.Stdout = out
	}
	if errOut != nil {
		spec.Stderr = errOut
	}
	sizes, stop := s.sizes(ctx, resize)
	defer stop()
	spec.Resize = sizes
	return s.Runtime.Attach(ctx, container, spec)
}
