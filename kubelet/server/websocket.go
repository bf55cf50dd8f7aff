package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// The fifth version of the channel protocol: each message begins with its channel; a message on the close channel ends
// the one it names, which is how the end of the input is told.
const (
	protocolV5   = "v5.channel.k8s.io"
	stdinChannel = iota - 1
	stdoutChannel
	stderrChannel
	errorChannel
	resizeChannel
	closeChannel = 255
)

// session runs something with a client's streams.
type session func(ctx context.Context, in io.Reader, out, errOut io.WriteCloser, resize <-chan remotecommand.TerminalSize) error

func wantsV5(r *http.Request) bool {
	for _, p := range websocket.Subprotocols(r) {
		if p == protocolV5 {
			return true
		}
	}
	return false
}

// serveV5 carries a session over one WebSocket.
func (s *server) serveV5(w http.ResponseWriter, r *http.Request, o *remotecommand.Options, run session) {
	up := websocket.Upgrader{Subprotocols: []string{protocolV5}, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &channels{conn: conn, resize: make(chan remotecommand.TerminalSize, 1)}
	var in io.Reader
	if o.Stdin {
		in, c.stdin = io.Pipe()
	}
	g := s.group(ctx, "websocket")
	g.Go("read", func(ctx context.Context) error {
		defer cancel()
		return c.read(ctx)
	})
	err = run(ctx, in, c.writer(o.Stdout, stdoutChannel), c.writer(o.Stderr && !o.TTY, stderrChannel), c.resize)
	if p, ok := in.(*io.PipeReader); ok {
		p.CloseWithError(io.ErrClosedPipe)
	}
	c.end(err)
	conn.Close()
	_ = g.Wait()
}

// channels are the streams of one connection.
type channels struct {
	conn   *websocket.Conn
	mu     sync.Mutex // writers take turns
	stdin  *io.PipeWriter
	resize chan remotecommand.TerminalSize
}

// writer is a stream to the client, nil when it does not want it.
func (c *channels) writer(wanted bool, channel byte) io.WriteCloser {
	if !wanted {
		return nil
	}
	return channelWriter{c, channel}
}

type channelWriter struct {
	c       *channels
	channel byte
}

// Write sends one message.
func (w channelWriter) Write(p []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if err := w.c.conn.WriteMessage(websocket.BinaryMessage, append([]byte{w.channel}, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close does nothing: the streams end together.
func (channelWriter) Close() error { return nil }

// read takes the client's messages until it goes.
func (c *channels) read(ctx context.Context) error {
	defer func() {
		if c.stdin != nil {
			c.stdin.Close()
		}
	}()
	for {
		_, b, err := c.conn.ReadMessage()
		if err != nil {
			return nil //nolint:nilerr // the client has gone
		}
		if len(b) == 0 {
			continue
		}
		switch b[0] {
		case stdinChannel:
			if c.stdin != nil {
				_, _ = c.stdin.Write(b[1:]) // nobody reads any more when this fails
			}
		case resizeChannel:
			c.size(ctx, b[1:])
		case closeChannel:
			if len(b) > 1 && b[1] == stdinChannel && c.stdin != nil {
				c.stdin.Close()
			}
		}
	}
}

// size hands a terminal size on; of several that wait only the newest counts.
func (c *channels) size(ctx context.Context, b []byte) {
	var size remotecommand.TerminalSize
	if json.Unmarshal(b, &size) != nil || ctx.Err() != nil {
		return
	}
	select {
	case <-c.resize:
	default:
	}
	c.resize <- size
}

// end tells the client how the session ended.
func (c *channels) end(err error) {
	b, _ := json.Marshal(outcome(err)) //nolint:errchkjson // a Status always marshals
	_, _ = channelWriter{c, errorChannel}.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

func outcome(err error) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit := utilexec.ExitError(nil); errors.As(err, &exit) && exit.Exited() {
		return metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: err.Error(),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitStatus())}}}}
	}
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		Message: "error executing command in container: " + err.Error()}
}
