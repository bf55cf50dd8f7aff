package node

import (
	"fmt"
	"net/http"

	"github.com/nodeactor/nodeactor/supervision/core"
)

// faultsPath is where administrators inject faults when the node was told to allow it. It
// lies behind the API's authentication and authorization.
const faultsPath = "/debug/faults"

// injectFault takes ?path=node/core/scheduler&kind=panic|hang|errorreturn|bindfailure.
func (p *parts) injectFault(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	path, name := r.URL.Query().Get("path"), r.URL.Query().Get("kind")
	kind, ok := core.ParseFaultKind(name)
	if !ok {
		http.Error(w, fmt.Sprintf("kind %q is not panic, hang, errorreturn or bindfailure", name), http.StatusBadRequest)
		return
	}
	if err := p.sys.Inject(path, kind); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	p.log.Warn("fault injected", "path", path, "kind", kind.String())
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintln(w, "{}")
}
