package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// maxBufferedBytes is how far a stream's writer may be ahead of its reader before it has to wait.
const maxBufferedBytes = 1 << 20

// stream serves a request whose answer is read while it is written.
func (t *inProcess) stream(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	p := newPipe(cancel)
	stopWithServer := context.AfterFunc(t.server.ctx, cancel)
	context.AfterFunc(ctx, p.abort)
	t.server.spawn(req.URL.Path, func() {
		defer stopWithServer()
		defer cancel()
		defer p.finish()
		t.server.inProcessHandler.ServeHTTP(p, req.WithContext(ctx))
	})
	select {
	case <-p.started:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status:        http.StatusText(p.code),
		StatusCode:    p.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        p.sent,
		Body:          p,
		ContentLength: -1,
		Request:       req,
	}, nil
}

// pipe is the response writer of a stream on one side and its body on the other.
type pipe struct {
	cancel  context.CancelFunc // ends the handler
	header  http.Header        // belongs to the handler
	sent    http.Header        // the headers as they were when the answer began
	code    int
	started chan struct{} // closed when code and sent are set
	gone    chan bool     // never written to: the request's context says the same

	mu       sync.Mutex
	changed  sync.Cond
	buffer   bytes.Buffer
	closed   bool // by the reader
	finished bool // by the handler
}

func newPipe(cancel context.CancelFunc) *pipe {
	p := &pipe{cancel: cancel, header: http.Header{}, started: make(chan struct{}), gone: make(chan bool)}
	p.changed.L = &p.mu
	return p
}

// Header returns the headers of the answer.
func (p *pipe) Header() http.Header { return p.header }

// WriteHeader begins the answer.
func (p *pipe) WriteHeader(code int) {
	if p.code == 0 && code >= http.StatusOK {
		p.code, p.sent = code, p.header.Clone()
		close(p.started)
	}
}

// Flush begins the answer. What is written can be read at once, so there is nothing else to do.
func (p *pipe) Flush() { p.WriteHeader(http.StatusOK) }

// Write hands the data to the reader, and waits while it is too far behind.
func (p *pipe) Write(data []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() > maxBufferedBytes && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	p.buffer.Write(data)
	p.changed.Broadcast()
	return len(data), nil
}

// Read returns what was written, io.EOF after the handler's end.
func (p *pipe) Read(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() == 0 && !p.finished && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	n, err := p.buffer.Read(data)
	p.changed.Broadcast()
	return n, err
}

// Close ends the handler.
func (p *pipe) Close() error {
	p.abort()
	p.cancel()
	return nil
}

// abort makes both sides stop waiting, unless the handler has ended by itself: then what it wrote can still be read.
func (p *pipe) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || !p.finished
	p.changed.Broadcast()
}

// finish tells the reader that no more comes.
func (p *pipe) finish() {
	p.WriteHeader(http.StatusOK)
	p.mu.Lock()
	p.finished = true
	p.changed.Broadcast()
	p.mu.Unlock()
}

// CloseNotify says when the reader is gone. Filters take a writer for one that can flush only when it has this method as well.
//
//nolint:staticcheck // deprecated, and asked for by the library
func (p *pipe) CloseNotify() <-chan bool { return p.gone }
