package server

import (
	"fmt"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/kubelet/pod/core"
)

func uid(s string) types.UID { return types.UID(s) }

// target is the container a request speaks of.
type target struct {
	pod    *v1.Pod
	name   string
	status v1.ContainerStatus
}

// refusal is an answer other than success.
type refusal struct {
	code int
	text string
}

func (r *refusal) write(w http.ResponseWriter) { http.Error(w, r.text, r.code) }

func (s *server) findPod(r *http.Request) (*v1.Pod, *refusal) {
	ns, name := r.PathValue("namespace"), r.PathValue("pod")
	p, ok := s.Pods.Find(ns, name, r.PathValue("uid"))
	if !ok {
		return nil, &refusal{http.StatusNotFound, fmt.Sprintf("pod %q in namespace %q is not on node %s", name, ns, s.Node)}
	}
	return p, nil
}

func (s *server) find(r *http.Request) (target, *refusal) {
	p, no := s.findPod(r)
	if no != nil {
		return target{}, no
	}
	t := target{pod: p, name: r.PathValue("container")}
	for _, list := range [][]v1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == t.name {
				t.status = list[i]
				return t, nil
			}
		}
	}
	return t, &refusal{http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", t.name, p.Name)}
}

// running is the ID of the target's container, if it lives.
func (t target) running() (string, *refusal) {
	if t.status.State.Running == nil {
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("container %q in pod %q is not running: %s", t.name, t.pod.Name, reason(t.status.State))}
	}
	return strings.TrimPrefix(t.status.ContainerID, core.ContainerIDPrefix), nil
}

func reason(s v1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return "waiting (" + s.Waiting.Reason + ")"
	case s.Terminated != nil:
		return "terminated (" + s.Terminated.Reason + ")"
	}
	return "unknown"
}
