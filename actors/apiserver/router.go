package apiserver

import (
	"net/http"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
)

const (
	// maxRoutes bounds the shapes of requests whose route is remembered.
	maxRoutes = 4096
	// maxShape is the length in bytes of the longest shape that is remembered.
	maxShape = 512
)

// router selects routes as upstream's does, and remembers what it selected: the search reads every route of the group, which is a tenth of
// the work of a get.
//
// A route depends on the method, on both content headers and on where in the path a word stands that some route names; all other words are
// values of parameters. These together are the shape of a request.
type router struct {
	slow restful.CurlyRouter

	mu     sync.RWMutex
	count  int // of services when words was made, of which last was the last
	last   *restful.WebService
	words  map[string]struct{} // that stand in any route; nil while routes must not be remembered
	routes map[string]selection
}

type selection struct {
	service *restful.WebService
	route   *restful.Route
}

// SelectRoute implements restful.RouteSelector.
func (r *router) SelectRoute(services []*restful.WebService, req *http.Request) (*restful.WebService, *restful.Route, error) {
	var space [maxShape]byte
	shape := r.shape(space[:0], services, req)
	if shape == nil {
		return r.slow.SelectRoute(services, req)
	}
	r.mu.RLock()
	found, ok := r.routes[string(shape)]
	r.mu.RUnlock()
	if ok {
		return found.service, found.route, nil
	}
	service, route, err := r.slow.SelectRoute(services, req)
	if err == nil && len(shape) <= maxShape {
		r.remember(string(shape), selection{service, route})
	}
	return service, route, err
}

// remember keeps a selection; when there are too many all are forgotten, so that clients who make up headers cost no more than that.
func (r *router) remember(shape string, s selection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.routes) >= maxRoutes {
		clear(r.routes)
	}
	r.routes[shape] = s
}

// shape appends the shape of a request to b; nil means that its route must be searched.
func (r *router) shape(b []byte, services []*restful.WebService, req *http.Request) []byte {
	words := r.wordsOf(services)
	if words == nil {
		return nil
	}
	for _, header := range [3]string{req.Method, req.Header.Get("Content-Type"), req.Header.Get("Accept")} {
		b = append(append(b, header...), '\n')
	}
	for rest, more := req.URL.Path, true; more; {
		var word string
		word, rest, more = strings.Cut(rest, "/")
		if _, named := words[word]; !named {
			word = "*"
		}
		b = append(append(b, word...), '/')
	}
	return b
}

// wordsOf returns the words of all routes. They are collected anew when a service was added; then nothing is remembered any more.
func (r *router) wordsOf(services []*restful.WebService) map[string]struct{} {
	if len(services) == 0 {
		return nil
	}
	count, last := len(services), services[len(services)-1]
	r.mu.RLock()
	if r.count == count && r.last == last {
		defer r.mu.RUnlock()
		return r.words
	}
	r.mu.RUnlock()
	words := wordsIn(services)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.last, r.words, r.routes = count, last, words, map[string]selection{}
	return words
}

// wordsIn returns the words that stand in the routes' paths, or nil when a route looks at more of a request than its shape.
func wordsIn(services []*restful.WebService) map[string]struct{} {
	words := map[string]struct{}{"": {}}
	for _, service := range services {
		paths := []string{service.RootPath()}
		for _, route := range service.Routes() {
			if len(route.If) > 0 {
				return nil
			}
			paths = append(paths, route.Path)
		}
		for _, word := range strings.Split(strings.Join(paths, "/"), "/") {
			if strings.Contains(word, ":") && !strings.HasSuffix(word, ":*}") {
				return nil // a verb of its own, or a parameter with a pattern
			}
			words[word] = struct{}{}
		}
	}
	return words
}
