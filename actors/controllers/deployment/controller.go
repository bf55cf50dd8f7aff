package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Component is the name under which the controller records events.
const Component = "deployment-controller"

var (
	kind    = cache.KindOf[*appsv1.Deployment]()
	setKind = cache.KindOf[*appsv1.ReplicaSet]()
	podKind = cache.KindOf[*corev1.Pod]()
)

// New makes the controller.
func New(client kubernetes.Interface, clock kube.Clock, events record.EventRecorder) kube.Controller {
	return kube.Controller{
		Name: "deployment", Manifests: kind,
		Reads: []kube.Read{
			kube.Self(kind),
			{Kind: setKind, Keys: deploymentsOf},
			{Kind: podKind, Keys: recreating},
		},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{cache: c, client: client, clock: clock, events: events}
		},
	}
}

// deploymentsOf names the Deployments a set's change concerns: its controllers before and after, or those that could adopt it.
func deploymentsOf(c *cache.Cache, change cache.Change) []kube.Key {
	keys := kube.ControllersOf(change, kind.GroupVersionKind())
	if change.Deleted() {
		return keys
	}
	set, ok := cache.As[*appsv1.ReplicaSet](change.New)
	if !ok || metav1.GetControllerOf(set) != nil {
		return keys
	}
	for _, d := range cache.List[*appsv1.Deployment](c, set.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels)) {
			keys = append(keys, kube.Key{Namespace: d.Namespace, Name: d.Name})
		}
	}
	return keys
}

// recreating names the Deployment that waits for a pod to end before it makes new ones.
func recreating(c *cache.Cache, change cache.Change) []kube.Key {
	if !change.Deleted() && !ended(change) {
		return nil
	}
	var keys []kube.Key
	for _, owner := range kube.ControllersOf(change, setKind.GroupVersionKind()) {
		set, ok := cache.Get[*appsv1.ReplicaSet](c, owner.Namespace, owner.Name)
		if !ok {
			continue
		}
		if ref := metav1.GetControllerOf(set); ref != nil && waitsForPods(c, set.Namespace, ref) {
			keys = append(keys, kube.Key{Namespace: set.Namespace, Name: ref.Name})
		}
	}
	return keys
}

func ended(change cache.Change) bool {
	pod, ok := cache.As[*corev1.Pod](change.New)
	return ok && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

func waitsForPods(c *cache.Cache, namespace string, ref *metav1.OwnerReference) bool {
	d, ok := cache.Get[*appsv1.Deployment](c, namespace, ref.Name)
	return ok && d.UID == ref.UID && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}
