package endpoints

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers/serving"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Component is the name under which the controller records events.
const Component = component

var (
	kind        = cache.KindOf[*corev1.Endpoints]()
	serviceKind = cache.KindOf[*corev1.Service]()
)

// New makes the controller.
func New(client kubernetes.Interface, events record.EventRecorder) kube.Controller {
	return kube.Controller{
		Name:    "endpoints",
		About:   kube.Named(serviceKind),
		Initial: initial,
		Reads: []kube.Read{
			kube.Self(serviceKind),
			serving.ByPods(),
			{Kind: kind, Keys: touched},
		},
		New: func(c *cache.Cache) kube.Reconciler {
			return &reconciler{cache: c, client: client, events: events}
		},
	}
}

// initial names all Services, and those that are gone but left Endpoints that this controller made.
func initial(c *cache.Cache) []kube.Key {
	keys := serving.Names(c)
	ours := labels.SelectorFromSet(labels.Set{managedBy: component})
	for _, e := range cache.List[*corev1.Endpoints](c, "", ours) {
		if !c.Has(serviceKind, e.Namespace, e.Name) {
			keys = append(keys, kube.Key{Namespace: e.Namespace, Name: e.Name})
		}
	}
	return keys
}

// touched names the Service whose Endpoints somebody changed.
func touched(c *cache.Cache, change cache.Change) []kube.Key {
	meta := change.Meta()
	if !c.Has(serviceKind, meta.Namespace, meta.Name) {
		return nil
	}
	return []kube.Key{{Namespace: meta.Namespace, Name: meta.Name}}
}

// reconciler runs passes over Services.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	events record.EventRecorder
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	service, ok := cache.Get[*corev1.Service](r.cache, key.Namespace, key.Name)
	if !ok {
		return kube.Done(), r.remove(ctx, key)
	}
	if !serving.Managed(service) {
		return kube.None(), nil
	}
	present, ok := cache.Get[*corev1.Endpoints](r.cache, key.Namespace, key.Name)
	if !ok {
		present = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	e := wanted(present, service, serving.Pods(r.cache, service))
	if ok && same(present, e) {
		return kube.None(), nil
	}
	return kube.None(), r.write(ctx, service, e)
}

func same(a, b *corev1.Endpoints) bool {
	return apiequality.Semantic.DeepEqual(a.Subsets, b.Subsets) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

func (r *reconciler) write(ctx context.Context, service *corev1.Service, e *corev1.Endpoints) error {
	client := r.client.CoreV1().Endpoints(e.Namespace)
	if e.ResourceVersion == "" {
		_, err := client.Create(ctx, e, metav1.CreateOptions{})
		return r.judge(service, "FailedToCreateEndpoint", "create", err)
	}
	_, err := client.Update(ctx, e, metav1.UpdateOptions{})
	return r.judge(service, "FailedToUpdateEndpoint", "update", err)
}

// judge passes over refusals that end by themselves and tells of others on the Service.
func (r *reconciler) judge(service *corev1.Service, reason, verb string, err error) error {
	switch {
	case err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		return err
	}
	r.events.Eventf(service, corev1.EventTypeWarning, reason, "Failed to %s endpoint for service %v/%v: %v", verb, service.Namespace, service.Name, err)
	return fmt.Errorf("cannot %s endpoints %s/%s: %w", verb, service.Namespace, service.Name, err)
}

// remove deletes the Endpoints of a Service that is gone, by the API's word too: a mistake here cuts off a living Service.
func (r *reconciler) remove(ctx context.Context, key kube.Key) error {
	if !r.cache.Has(kind, key.Namespace, key.Name) {
		return nil
	}
	_, err := r.client.CoreV1().Services(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	err = r.client.CoreV1().Endpoints(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete endpoints %s/%s: %w", key.Namespace, key.Name, err)
	}
	return nil
}
