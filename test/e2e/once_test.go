package e2e

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// startedOnce holds that Deployment, ReplicaSet and pods own one another, that each pod is bound, and that exactly one
// container was started for each.
func startedOnce(t *testing.T, h *host, pods []corev1.Pod) {
	var d appsv1.Deployment
	must(t, h.get(&d, "deployment", "web"))
	var sets appsv1.ReplicaSetList
	must(t, h.get(&sets, "rs", "-l", "app=web"))
	if len(sets.Items) != 1 || len(sets.Items[0].OwnerReferences) != 1 || sets.Items[0].OwnerReferences[0].UID != d.UID {
		t.Fatalf("the ReplicaSets of the Deployment are %+v", sets.Items)
	}
	if d.Status.ObservedGeneration != d.Generation || int(d.Status.ReadyReplicas) != len(pods) {
		t.Errorf("status %+v of generation %d", d.Status, d.Generation)
	}
	times := startsByPod(h, len(pods))
	for _, p := range pods {
		if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != sets.Items[0].UID || p.Spec.NodeName == "" {
			t.Errorf("pod %s is on %q, owned by %+v", p.Name, p.Spec.NodeName, p.OwnerReferences)
		}
		if n := times[string(p.UID)]; n != 1 || p.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("pod %s: %d starts, %+v", p.Name, n, p.Status.ContainerStatuses)
		}
	}
	if len(times) != len(pods) {
		t.Errorf("containers of %d pods were started, there are %d", len(times), len(pods))
	}
}

// startsByPod is how many containers were started for each pod, once that many pods are told of.
func startsByPod(h *host, pods int) map[string]int32 {
	h.t.Helper()
	var times map[string]int32
	h.eventually(podLimit, "the Events of the starts", func() error {
		var started corev1.EventList
		if err := h.get(&started, "events", "--field-selector=reason=Started"); err != nil {
			return err
		}
		times = map[string]int32{}
		for _, e := range started.Items {
			times[string(e.InvolvedObject.UID)] += max(1, e.Count)
		}
		if len(times) < pods {
			return notYet("%d pods are told of", len(times))
		}
		return nil
	})
	return times
}
