package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// guardLibraries takes from the libraries what would let them end the process: a panic on one of their goroutines is reported and ends that
// piece of work, and a fatal log line ends the goroutine it was written on. It is process-wide and done once.
var guardLibraries = sync.OnceFunc(func() {
	utilruntime.ReallyCrash = false
	klog.OsExit = func(int) { runtime.Goexit() }
})

// recovering answers 500 for a request whose handler panics. http.ErrAbortHandler passes: it is how a handler cuts the connection.
func (s *Server) recovering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				s.reportPanic(r.Context(), r.Method+" "+r.URL.Path, v)
				http.Error(w, "This request made the API server panic. Its log says more.", http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// reportPanic logs the panic and tells whoever counts them.
func (s *Server) reportPanic(ctx context.Context, what string, value any) {
	s.log.Error("panic contained", "in", what, "value", fmt.Sprint(value), "stack", string(debug.Stack()))
	for _, count := range utilruntime.PanicHandlers {
		count(ctx, value)
	}
}

// spawn runs f on a goroutine that Close waits for. A panic ends f and nothing else.
func (s *Server) spawn(what string, f func()) {
	s.running.Go(func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				s.reportPanic(s.ctx, what, v)
			}
		}()
		f()
	})
}
