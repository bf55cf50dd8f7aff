package kube

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/hotloop"
)

// mends tells whether a change of a manifest may have removed what its reconciler fails of: whatever it says, other than in its status.
func mends(change *cache.Change) bool {
	if change.Old.Zero() || change.New.Zero() {
		return true
	}
	before, errBefore := plainOf(change.Old)
	after, errAfter := plainOf(change.New)
	if errBefore != nil || errAfter != nil {
		return true
	}
	return !reflect.DeepEqual(withoutStatus(before), withoutStatus(after))
}

// replaces tells whether a change of a manifest is its end, or puts another of the same name in its place.
func replaces(change *cache.Change) bool {
	return change.OldMeta != nil && (change.NewMeta == nil || change.OldMeta.UID != change.NewMeta.UID)
}

// withoutStatus takes away what a write of the status changes. The object is the caller's own.
func withoutStatus(object map[string]any) map[string]any {
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		delete(metadata, "resourceVersion")
	}
	return object
}

// judgeEnd tells the breaker of an object that ended soon after a manifest of this controller had made it.
func (s *source) judgeEnd(change *cache.Change) {
	if s.deps.Breaker == nil || s.controller.Manifests == (cache.Kind{}) {
		return
	}
	owners := ControllersOf(*change, s.controller.Manifests.GroupVersionKind())
	if len(owners) == 0 || !s.deps.Breaker.soon(change.Meta()) {
		return
	}
	if kind, by := endOf(change); kind != 0 {
		for _, owner := range owners {
			s.deps.Breaker.ended(writerOf(s.controller.Name, owner), *change, kind, by)
		}
	}
}

// endOf tells whether a change is the end of an object, and who brought it about, as far as the object tells.
func endOf(change *cache.Change) (kind hotloop.EventKind, by string) {
	before, had := failedPod(change.Old)
	after, has := failedPod(change.New)
	switch {
	case has && !had:
		return hotloop.Failed, "the kubelet of " + after.Spec.NodeName + " (" + reasonOf(after) + ")"
	case change.Deleted() && before == nil:
		return hotloop.Deleted, "another client"
	}
	return 0, ""
}

// failedPod gives the pod of a record that has failed.
func failedPod(r cache.Record) (*corev1.Pod, bool) {
	pod, ok := cache.As[*corev1.Pod](r)
	if !ok || pod.Status.Phase != corev1.PodFailed {
		return nil, false
	}
	return pod, true
}

func reasonOf(pod *corev1.Pod) string {
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return string(pod.Status.Phase)
}
