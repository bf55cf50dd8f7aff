package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Component is the name under which the controller records events.
const Component = "replicaset-controller"

var (
	kind    = cache.KindOf[*appsv1.ReplicaSet]()
	podKind = cache.KindOf[*corev1.Pod]()
)

// New makes the controller.
func New(client kubernetes.Interface, clock kube.Clock, events record.EventRecorder) kube.Controller {
	return kube.Controller{
		Name: "replicaset", Manifests: kind,
		Reads: []kube.Read{kube.Self(kind), {Kind: podKind, Keys: setsOf}},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{
				cache: c, client: client, clock: clock, events: events,
				pods: controller.RealPodControl{KubeClient: client, Recorder: events},
			}
		},
	}
}

// setsOf names the sets a pod's change concerns: its controllers before and after, or, for a pod without one, those that could adopt it.
func setsOf(c *cache.Cache, change cache.Change) []kube.Key {
	keys := kube.ControllersOf(change, kind.GroupVersionKind())
	if change.Deleted() {
		return keys
	}
	pod, ok := cache.As[*corev1.Pod](change.New)
	if !ok || metav1.GetControllerOf(pod) != nil {
		return keys
	}
	return append(keys, adopters(c, pod)...)
}

func adopters(c *cache.Cache, pod *corev1.Pod) []kube.Key {
	var keys []kube.Key
	for _, set := range cache.List[*appsv1.ReplicaSet](c, pod.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			keys = append(keys, kube.Key{Namespace: set.Namespace, Name: set.Name})
		}
	}
	return keys
}
