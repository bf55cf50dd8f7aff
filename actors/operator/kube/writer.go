package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/nodeactor/nodeactor/actors/hotloop"
)

// ErrPaused is returned when a reconciler that writes in circles wants to write; its pass ends, and the next begins when the pause is over.
var ErrPaused = errors.New("this reconciler pauses: it writes in circles")

// writerKey marks the context of a pass with the reconciler that runs it.
type writerKey struct{}

func withWriter(ctx context.Context, w hotloop.Writer) context.Context {
	return context.WithValue(ctx, writerKey{}, w)
}

// WriterOf is the reconciler whose pass a context belongs to; false for everybody else.
func WriterOf(ctx context.Context) (hotloop.Writer, bool) {
	w, ok := ctx.Value(writerKey{}).(hotloop.Writer)
	return w, ok
}

func writerOf(controller string, key Key) hotloop.Writer {
	return hotloop.Writer{Name: controller, Manifest: key.String()}
}

// target reads from the path of a request which object it is about. The name is empty for a collection, whose creations the server may
// name; false for what is no resource.
func target(path string) (o hotloop.Object, ok bool) {
	root, rest := segment(path)
	switch root {
	case "api":
	case "apis":
		o.Group, rest = segment(rest)
	default:
		return o, false
	}
	_, rest = segment(rest) // the version
	o.Resource, rest = segment(rest)
	o.Name, rest = segment(rest)
	if below, after := segment(rest); o.Resource == "namespaces" && below != "" && !ofNamespaceItself(below) {
		o.Namespace, o.Resource = o.Name, below
		o.Name, _ = segment(after)
	}
	return o, o.Resource != ""
}

// segment cuts the first segment off a path.
func segment(path string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first, rest
}

// ofNamespaceItself tells the subresources of a namespace from the resources in it.
func ofNamespaceItself(s string) bool { return s == "status" || s == "finalize" }

// guarded is the way to the API of our reconcilers: it tells the breaker what they write and holds back who pauses.
type guarded struct {
	breaker *Breaker
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	w, ours := WriterOf(r.Context())
	if !ours || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return g.next.RoundTrip(r)
	}
	object, ok := target(r.URL.Path)
	if !ok {
		return g.next.RoundTrip(r)
	}
	if err := g.breaker.admit(w, r.Method, object); err != nil {
		return nil, err
	}
	before := g.breaker.version(object)
	response, err := g.next.RoundTrip(r)
	if err == nil {
		g.breaker.answered(w, r.Method, object, before, response.StatusCode)
	}
	return response, err
}
