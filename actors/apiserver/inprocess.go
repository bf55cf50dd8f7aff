package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/nodeactor/nodeactor/supervision"
)

// InProcess returns a client configuration with which code of this process calls the API as the given user: no socket, no TLS, no limit on
// its rate. Requests pass authorization, admission and validation like any other; only the proof of identity is left out, since whoever
// holds the configuration is in the process. Watches work; streams that need a connection of their own (exec, attach, port-forward) do not.
// The groups are used as given, with system:authenticated added. The caller owns the result.
func (s *Server) InProcess(name string, groups ...string) *rest.Config {
	groups = slices.Clone(groups)
	if !slices.Contains(groups, user.AllAuthenticated) {
		groups = append(groups, user.AllAuthenticated)
	}
	return s.inProcessConfig(&user.DefaultInfo{Name: name, Groups: groups})
}

func (s *Server) inProcessConfig(who user.Info) *rest.Config {
	return &rest.Config{
		Host:      inProcessAddress,
		Transport: &inProcess{server: s, user: who},
		QPS:       -1,
		UserAgent: "nodeactor",
		// Our own code knows what it writes; a deprecation warning per write would only fill the log. The caller may set another handler.
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
	}
}

// inProcess calls the API's handler where a transport would use a connection.
type inProcess struct {
	server *Server
	user   user.Info
}

// RoundTrip serves the request. A request that is answered as a whole runs on the caller's goroutine; a stream runs on its own, ends with
// the request's context or the closing of its body, and hands out what the handler has written since the last flush. A write of a
// generation that was replaced, before it or while it waited, fails with supervision.ErrFenced, which no client tries again.
func (t *inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Method == http.MethodHead {
		return t.serve(req)
	}
	if err := supervision.CheckFence(req.Context()); err != nil {
		return nil, err
	}
	resp, err := t.serve(req)
	if fenced := supervision.CheckFence(req.Context()); fenced != nil && (err != nil || resp.StatusCode == http.StatusForbidden) {
		return nil, fenced
	}
	return resp, err
}

func (t *inProcess) serve(req *http.Request) (*http.Response, error) {
	if err := t.server.waitAssembled(req.Context()); err != nil {
		return nil, err
	}
	served := req.WithContext(request.WithUser(req.Context(), t.user))
	served.RequestURI = req.URL.RequestURI()
	served.RemoteAddr = "127.0.0.1:0"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	if isStream(req) {
		return t.stream(served)
	}
	return t.whole(served)
}

// waitAssembled waits until there is a handler: plug-ins begin to ask while the server is still being put together.
func (s *Server) waitAssembled(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ctx.Err() != nil {
		return errClosed
	}
	select {
	case <-s.assembled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errClosed
	}
}

// errAborted is returned when the handler cut the connection instead of ending its answer.
var errAborted = errors.New("the API server aborted the request")

// aborted calls f and reports whether it ended by http.ErrAbortHandler.
func aborted(f func()) (yes bool) {
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			yes = true
		}
	}()
	f()
	return false
}

// errClosed is returned when the server is closed.
var errClosed = errors.New("the API server is closed")

// isStream reports whether the answer grows while it is read.
func isStream(req *http.Request) bool {
	query := req.URL.RawQuery
	return len(query) > 0 && (hasFlag(query, "watch") || hasFlag(query, "follow")) || strings.Contains(req.URL.Path, "/watch/")
}

// hasFlag reports whether the raw query sets the name to something true, without parsing the rest.
func hasFlag(query, name string) bool {
	for len(query) > 0 {
		var pair string
		pair, query, _ = cut(query)
		if len(pair) > len(name) && pair[:len(name)] == name && pair[len(name)] == '=' {
			on, _ := strconv.ParseBool(pair[len(name)+1:])
			return on
		}
	}
	return false
}

func cut(query string) (first, rest string, more bool) {
	for i := range len(query) {
		if query[i] == '&' {
			return query[:i], query[i+1:], true
		}
	}
	return query, "", false
}

func (t *inProcess) whole(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTimeout)
	defer cancel()
	w := &recorder{header: http.Header{}}
	if aborted(func() { t.server.inProcessHandler.ServeHTTP(w, req.WithContext(ctx)) }) {
		return nil, errAborted
	}
	return &http.Response{
		Status:        http.StatusText(w.status()),
		StatusCode:    w.status(),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(bytes.NewReader(w.body.Bytes())),
		ContentLength: int64(w.body.Len()),
		Request:       req,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first status.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
}

// Write keeps the data.
func (r *recorder) Write(data []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(data)
}

// Flush does nothing: the answer is handed out as a whole.
func (r *recorder) Flush() {}

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}
