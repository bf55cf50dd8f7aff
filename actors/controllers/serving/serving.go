// Package serving tells which Services a pod's change concerns and which pods serve a Service.
package serving

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/endpointslice/util"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// ByPods declares pods: a change that can alter endpoints concerns the Services that select the pod before or after it.
func ByPods() kube.Read {
	return kube.Read{Kind: cache.KindOf[*corev1.Pod](), Keys: services}
}

func services(c *cache.Cache, change cache.Change) []kube.Key {
	before, hadOne := cache.As[*corev1.Pod](change.Old)
	after, hasOne := cache.As[*corev1.Pod](change.New)
	var projected *util.PodProjectionKey
	switch {
	case hadOne && hasOne:
		projected = util.GetPodUpdateProjectionKey(before, after)
	case hasOne && len(after.Status.PodIPs) > 0:
		projected = util.GetPodUpdateProjectionKey(nil, after)
	case hadOne && len(before.Status.PodIPs) > 0:
		projected = util.GetPodUpdateProjectionKey(before, nil)
	}
	if projected == nil {
		return nil
	}
	return selecting(c, projected)
}

// selecting lists the Services that select any of the label sets of a change.
func selecting(c *cache.Cache, projected *util.PodProjectionKey) []kube.Key {
	var keys []kube.Key
	for _, service := range cache.List[*corev1.Service](c, projected.Namespace, nil) {
		if len(service.Spec.Selector) == 0 {
			continue
		}
		selector := labels.SelectorFromSet(service.Spec.Selector)
		if selector.Matches(projected.Labels) || projected.OldLabels != nil && selector.Matches(projected.OldLabels) {
			keys = append(keys, kube.Key{Namespace: service.Namespace, Name: service.Name})
		}
	}
	return keys
}

// On lists the Services that select a pod on a node.
func On(c *cache.Cache, node string) []kube.Key {
	var keys []kube.Key
	for _, pod := range c.PodsOn(node) {
		keys = append(keys, selecting(c, &util.PodProjectionKey{Namespace: pod.Namespace, Labels: pod.Labels})...)
	}
	return keys
}

// Managed tells whether endpoints of a Service are made by controllers; others are made by their users.
func Managed(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && service.Spec.Selector != nil
}

// Pods lists the pods a Service selects.
func Pods(c *cache.Cache, service *corev1.Service) []*corev1.Pod {
	return cache.List[*corev1.Pod](c, service.Namespace, labels.SelectorFromSet(service.Spec.Selector))
}

// Names lists all Services.
func Names(c *cache.Cache) []kube.Key {
	return kube.Every(c, cache.KindOf[*corev1.Service]())
}
