package serve

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/nodeactor/nodeactor/supervision"
)

// Recover contains the panics of an HTTP handler: each is counted with all others of the
// process and reported as a fault of path, and the client gets a plain 500 if nothing was
// written yet. http.ErrAbortHandler passes: it is how a handler hangs up on purpose. report
// is usually System.Report; nil only counts.
func Recover(path string, report func(supervision.Fault), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			supervision.CountPanic()
			if report != nil {
				report(faultOf(path, r, v))
			}
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		}()
		next.ServeHTTP(w, r)
	})
}

func faultOf(path string, r *http.Request, v any) supervision.Fault {
	stack := debug.Stack()
	return supervision.Fault{
		Kind: supervision.Panic, Path: path, Message: fmt.Sprintf("%s request", r.Method), Stack: stack,
		Err: &supervision.PanicError{Value: v, Stack: stack}, At: time.Now(),
	}
}
