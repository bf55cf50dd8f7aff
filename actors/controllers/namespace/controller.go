// Package namespace empties namespaces that are being deleted, custom resources included, and lets them go.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// recheck is how long until a namespace that still holds something is looked at again when nothing in it changes.
const recheck = 5 * time.Second

var kind = cache.KindOf[*corev1.Namespace]()

// New makes the controller.
func New(client kubernetes.Interface, meta metadata.Interface) kube.Controller {
	return kube.Controller{
		Name: "namespace", Manifests: kind,
		Reads: []kube.Read{kube.Self(kind), {Keys: emptied}},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{cache: c, client: client, metadata: meta}
		},
	}
}

// emptied names the terminating namespace whose last object, or last pod, has just gone. Pods go first, the rest after them.
func emptied(c *cache.Cache, change cache.Change) []kube.Key {
	if !change.Deleted() || change.Meta().Namespace == "" {
		return nil
	}
	meta := change.Meta()
	namespace := c.MetaByKey(kind.Key("", meta.Namespace))
	if namespace == nil || !namespace.Deleting {
		return nil
	}
	if c.Contents(meta.Namespace) == 0 || meta.Kind == "Pod" && !c.HasPods(meta.Namespace) {
		return []kube.Key{{Name: meta.Namespace}}
	}
	return nil
}

// reconciler runs passes over namespaces.
type reconciler struct {
	cache    *cache.Cache
	client   kubernetes.Interface
	metadata metadata.Interface

	mu      sync.Mutex
	deleter deletion.NamespacedResourcesDeleterInterface
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	namespace, ok := cache.Get[*corev1.Namespace](r.cache, "", key.Name)
	if !ok || namespace.DeletionTimestamp == nil {
		return kube.None(), nil
	}
	deleter, err := r.resources(ctx)
	if err != nil {
		return kube.None(), fmt.Errorf("cannot empty namespace %q: %w", key.Name, err)
	}
	err = deleter.Delete(ctx, key.Name)
	var remaining *deletion.ResourcesRemainingError
	switch {
	case errors.As(err, &remaining):
		return kube.Requeue(min(recheck, time.Duration(remaining.Estimate/2+1)*time.Second)), nil
	case err != nil:
		return kube.None(), fmt.Errorf("cannot empty namespace %q: %w", key.Name, err)
	}
	return kube.None(), nil
}

// resources makes the deleter once discovery answers. The library ends the process when discovery has nothing for it, so it is
// never made from an empty answer.
func (r *reconciler) resources(ctx context.Context) (deletion.NamespacedResourcesDeleterInterface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleter != nil {
		return r.deleter, nil
	}
	first, err := r.client.Discovery().ServerPreferredNamespacedResources()
	if len(first) == 0 {
		return nil, fmt.Errorf("cannot discover resources: %w", errors.Join(errNothing, err))
	}
	r.deleter = deletion.NewNamespacedResourcesDeleter(context.WithoutCancel(ctx), r.client.CoreV1().Namespaces(), r.metadata, r.client.CoreV1(),
		answerOnce(first, r.client.Discovery().ServerPreferredNamespacedResources), corev1.FinalizerKubernetes)
	return r.deleter, nil
}

// errNothing is returned when discovery answers without a resource.
var errNothing = errors.New("the API offers no namespaced resource")

// answerOnce gives a known answer to the first question and asks for each later one.
func answerOnce(first []*metav1.APIResourceList, ask func() ([]*metav1.APIResourceList, error)) func() ([]*metav1.APIResourceList, error) {
	var mu sync.Mutex
	return func() ([]*metav1.APIResourceList, error) {
		mu.Lock()
		known := first
		first = nil
		mu.Unlock()
		if known != nil {
			return known, nil
		}
		return ask()
	}
}
