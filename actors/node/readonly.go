package node

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/nodeactor/nodeactor/actors/apiserver"
	"github.com/nodeactor/nodeactor/actors/health"
	"github.com/nodeactor/nodeactor/store"
	"github.com/nodeactor/nodeactor/supervision"
)

// warningCode is the code of a warning that is about everything.
const warningCode = 299

// readOnlyTree is a node that only answers reads: it has no kubelet, no scheduler and no controllers, so nothing is done on what may be long
// out of date, and running containers are left alone. Where there is nothing to read from it has no store either.
func (p *parts) readOnlyTree(h *health.Health) (supervision.Spec, error) {
	p.unhealthy = h
	listeners := group("listeners", worker("listener", p.listenerChild), worker("socket", func() supervision.Handler { return p.readOnlySocket(h) }))
	cluster := group("cluster", worker("identity", p.identityChild))
	watch := worker("health", h.Child)
	if p.damage.verdict == store.Unreadable {
		return group("node", cluster, group("api", listeners), group("core", watch)), nil
	}
	return group("node",
		group("store", worker("engine", p.frozenChild)),
		cluster,
		group("api", worker("server", func() supervision.Handler { return p.serverChild(h, nil) }), listeners),
		group("core", watch),
	), nil
}

// readOnlySocket serves what of the local socket needs no kubelet: the tree and the checks.
func (p *parts) readOnlySocket(h http.Handler) supervision.Handler {
	return p.serveSocket(func(ctx context.Context) http.Handler {
		mux := http.NewServeMux()
		p.steering(ctx).routes(mux)
		mux.Handle("GET /livez", h)
		mux.Handle("GET /readyz", h)
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, p.note(), http.StatusServiceUnavailable)
		})
		return mux
	})
}

// note is what there is to say above the tree.
func (p *parts) note() string {
	if why := p.absent.reason(); why != nil {
		return oneLine(why.Error())
	}
	if p.damage == nil {
		return ""
	}
	return p.damage.reason()
}

// warn tells every client that what it reads is not the present.
func (p *parts) warn(w http.ResponseWriter) {
	if text, err := utilnet.NewWarningHeader(warningCode, "-", p.damage.short()); err == nil {
		w.Header().Add("Warning", text)
	}
}

// unreadable answers while there is no store to read from: never with an empty success.
func (p *parts) unreadable(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/livez", "/readyz", "/healthz":
		p.unhealthy.ServeHTTP(w, r)
		return
	case "/version":
		responsewriters.WriteRawJSON(http.StatusOK, apiserver.BuildVersion(), w)
		return
	}
	err := apierrors.NewServiceUnavailable(p.damage.reason())
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", metav1.SchemeGroupVersion.Version
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}
