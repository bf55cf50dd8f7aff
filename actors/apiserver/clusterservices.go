package apiserver

import (
	"context"
	"net/url"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// clusterServices finds where a Service is answered: at one of its endpoints, not at its cluster address, so that webhooks, aggregated APIs
// and `services/proxy` work on a host that routes no cluster addresses. It reads the index when asked; such calls are rare beside what an
// informer of every endpoint would cost.
type clusterServices struct{ client kubernetes.Interface }

// ResolveEndpoint returns the address of a ready endpoint behind the Service's port.
func (c clusterServices) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	service, err := c.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	only := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := only.Add(service); err != nil {
		return nil, err
	}
	return proxy.ResolveEndpoint(corev1listers.NewServiceLister(only), c, namespace, name, port)
}

// GetEndpointSlices returns the slices of the Service, none for an unknown one.
func (c clusterServices) GetEndpointSlices(namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	list, err := c.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return nil, err
	}
	slices := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return slices, nil
}
