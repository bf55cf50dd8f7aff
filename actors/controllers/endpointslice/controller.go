// Package endpointslice keeps the EndpointSlices of every Service that selects pods, by upstream's own packing library.
package endpointslice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/controllers/serving"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

const (
	// Component is the name under which the controller records events.
	Component = "endpoint-slice-controller"
	// managedBy is the value of the label that marks slices of this controller; upstream's, so that its tools know them.
	managedBy = "endpointslice-controller.k8s.io"
	// perSlice is how many endpoints one slice holds; upstream's default.
	perSlice = 100
)

var (
	kind        = cache.KindOf[*discoveryv1.EndpointSlice]()
	serviceKind = cache.KindOf[*corev1.Service]()
	nodeKind    = cache.KindOf[*corev1.Node]()
)

// New makes the controller.
func New(client kubernetes.Interface, events record.EventRecorder) kube.Controller {
	return kube.Controller{
		Name:    "endpointslice",
		About:   kube.Named(serviceKind),
		Initial: serving.Names,
		Reads: []kube.Read{
			kube.Self(serviceKind),
			serving.ByPods(),
			{Kind: kind, Keys: touched},
			{Kind: nodeKind, Keys: joined},
		},
		New: func(c *cache.Cache) kube.Reconciler {
			tracker := util.NewEndpointSliceTracker()
			return &reconciler{
				cache: c, tracker: tracker, events: events, triggers: util.NewTriggerTimeTracker(),
				packer: endpointslice.NewReconciler(client, nodes{c}, perSlice, tracker, nil, events, managedBy, sameZone()),
			}
		},
	}
}

// sameZone follows upstream's switch for the trafficDistribution values of newer Services.
func sameZone() endpointslice.ReconcilerOption {
	on := utilfeature.DefaultFeatureGate.Enabled(features.PreferSameTrafficDistribution)
	return endpointslice.WithPreferSameTrafficDistributionEnabled(on)
}

// touched names the Service whose slice somebody changed, before and after the change.
func touched(c *cache.Cache, change cache.Change) []kube.Key {
	var keys []kube.Key
	for _, record := range []cache.Record{change.Old, change.New} {
		slice, ok := cache.As[*discoveryv1.EndpointSlice](record)
		if !ok || slice.Labels[discoveryv1.LabelManagedBy] != managedBy {
			continue
		}
		if name := slice.Labels[discoveryv1.LabelServiceName]; name != "" && c.Has(serviceKind, slice.Namespace, name) {
			keys = append(keys, kube.Key{Namespace: slice.Namespace, Name: name})
		}
	}
	return keys
}

// joined names the Services with pods on a node that has just come to be: a slice is refused while a pod's node is not known.
func joined(c *cache.Cache, change cache.Change) []kube.Key {
	if !change.Old.Zero() {
		return nil
	}
	return serving.On(c, change.Meta().Name)
}

// reconciler runs passes over Services.
type reconciler struct {
	cache    *cache.Cache
	packer   *endpointslice.Reconciler
	tracker  *util.EndpointSliceTracker
	triggers *util.TriggerTimeTracker
	events   record.EventRecorder
}

// Reconcile implements kube.Reconciler. Slices of a Service that is gone are garbage of its owner reference.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	service, ok := cache.Get[*corev1.Service](r.cache, key.Namespace, key.Name)
	if !ok {
		r.triggers.DeleteService(key.Namespace, key.Name)
		r.packer.DeleteService(key.Namespace, key.Name)
		r.tracker.DeleteService(key.Namespace, key.Name)
		return kube.Done(), nil
	}
	if !serving.Managed(service) {
		return kube.None(), nil
	}
	pods := serving.Pods(r.cache, service)
	trigger := r.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	err := r.packer.Reconcile(klog.FromContext(ctx), service, pods, r.slices(service), trigger)
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return kube.None(), nil
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		r.events.Eventf(service, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", service.Namespace, service.Name, err)
	}
	return kube.None(), fmt.Errorf("cannot update endpoint slices of service %s/%s: %w", service.Namespace, service.Name, err)
}

// slices lists a Service's slices of this controller that are not going away.
func (r *reconciler) slices(service *corev1.Service) []*discoveryv1.EndpointSlice {
	ours := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: managedBy})
	var slices []*discoveryv1.EndpointSlice
	for _, slice := range cache.List[*discoveryv1.EndpointSlice](r.cache, service.Namespace, ours) {
		if slice.DeletionTimestamp == nil {
			slices = append(slices, slice)
		}
	}
	return slices
}

// nodes is the cache in the shape the packing library wants.
type nodes struct{ cache *cache.Cache }

var _ corelisters.NodeLister = nodes{}

// List implements corelisters.NodeLister.
func (n nodes) List(selector labels.Selector) ([]*corev1.Node, error) {
	return cache.List[*corev1.Node](n.cache, "", selector), nil
}

// Get implements corelisters.NodeLister.
func (n nodes) Get(name string) (*corev1.Node, error) {
	node, ok := cache.Get[*corev1.Node](n.cache, "", name)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	return node, nil
}
