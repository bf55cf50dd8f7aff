package supervisionrest

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	api "github.com/nodeactor/nodeactor/actors/apiserver/supervisionapi"
)

const prefix = "/apis/" + api.GroupName + "/"

// hints say what to do instead of a write.
var hints = map[string]string{
	api.Actors:        "actors show the supervision tree and cannot be written; to give one a new life, run `nodeactor restart PATH` on its node",
	api.FaultPolicies: "faultpolicies show what is in force and cannot be written; to change one, set faultPolicies in the node's configuration file and restart the node",
}

// Refuse answers writes of the group with what to do instead, and lets everything else pass. Discovery offers no verb that writes, so only
// clients that do not look come here.
func Refuse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || !strings.HasPrefix(r.URL.Path, prefix) {
			next.ServeHTTP(w, r)
			return
		}
		info, _ := request.RequestInfoFrom(r.Context())
		if info == nil || hints[info.Resource] == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", http.MethodGet)
		responsewriters.WriteRawJSON(http.StatusMethodNotAllowed, refusal(info), w)
	})
}

func refusal(info *request.RequestInfo) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: hints[info.Resource],
		Details: &metav1.StatusDetails{Group: info.APIGroup, Kind: info.Resource, Name: info.Name},
	}
}
