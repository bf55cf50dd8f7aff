package nodelifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Component is the name under which the controller records events.
const Component = "node-controller"

var (
	kind      = cache.KindOf[*corev1.Node]()
	podKind   = cache.KindOf[*corev1.Pod]()
	leaseKind = cache.KindOf[*coordinationv1.Lease]()
)

// New makes the controller. beats may be nil: then no node ever counts as silent.
func New(client kubernetes.Interface, clock kube.Clock, events record.EventRecorder, beats Heartbeats) kube.Controller {
	return kube.Controller{
		Name:    "node-lifecycle",
		About:   kube.Named(kind),
		Initial: initial,
		Reads: []kube.Read{
			kube.Self(kind),
			{Kind: leaseKind, Keys: renewed},
			{Kind: podKind, Keys: placed},
		},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{
				cache: c, client: client, clock: clock, events: events, beats: beats,
				since: clock.Now(), missing: map[string]time.Time{},
			}
		},
	}
}

// initial names all nodes, and those that pods are placed on but that do not exist.
func initial(c *cache.Cache) []kube.Key {
	var keys []kube.Key
	for _, name := range c.Names(kind) {
		keys = append(keys, kube.Key{Name: name.Name})
	}
	for _, node := range c.Placements() {
		if !c.Has(kind, "", node) {
			keys = append(keys, kube.Key{Name: node})
		}
	}
	return keys
}

// renewed names the node whose lease came back: one that was unknown. A renewal of a healthy node concerns nobody.
func renewed(c *cache.Cache, change cache.Change) []kube.Key {
	meta := change.Meta()
	if meta.Namespace != corev1.NamespaceNodeLease {
		return nil
	}
	node, ok := cache.Get[*corev1.Node](c, "", meta.Name)
	if !ok || readiness(node.Status.Conditions) != corev1.ConditionUnknown {
		return nil
	}
	return []kube.Key{{Name: meta.Name}}
}

// placed names the node a pod was just placed on, when that node evicts or does not exist: nothing else is decided about pods.
func placed(c *cache.Cache, change cache.Change) []kube.Key {
	pod, ok := cache.As[*corev1.Pod](change.New)
	if !ok || pod.Spec.NodeName == "" {
		return nil
	}
	if before, ok := cache.As[*corev1.Pod](change.Old); ok && before.Spec.NodeName != "" {
		return nil
	}
	node, ok := cache.Get[*corev1.Node](c, "", pod.Spec.NodeName)
	if ok && !evicts(node) {
		return nil
	}
	return []kube.Key{{Name: pod.Spec.NodeName}}
}

func evicts(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute {
			return true
		}
	}
	return false
}
