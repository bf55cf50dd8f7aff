package replicagroup

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// What is written on the pods of a group: labels, and annotations where values may be longer or may be empty.
const (
	GroupLabel       = "apps.nodeactor.io/group"
	ReplicaLabel     = "apps.nodeactor.io/replica"
	SizeLabel        = "apps.nodeactor.io/size"
	TemplateLabel    = "apps.nodeactor.io/template"
	ZonesAnnotation  = "apps.nodeactor.io/zones"
	ReasonAnnotation = "apps.nodeactor.io/reason"
)

// podOf is the pod of a new replica.
func podOf(g *Group, t *corev1.PodTemplateSpec, size Size, c strategy.Create) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	pod.Name, pod.GenerateName, pod.Namespace = podName(g.Name, c.Name), "", g.Namespace
	pod.Labels, pod.Annotations = orMade(pod.Labels), orMade(pod.Annotations)
	maps.Copy(pod.Labels, map[string]string{GroupLabel: g.Name, ReplicaLabel: c.Name, SizeLabel: c.Shape.Size, TemplateLabel: c.Shape.Template})
	maps.Copy(pod.Annotations, map[string]string{ReasonAnnotation: reasonOf(c)})
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, Kind.GroupVersionKind())}
	sized(&pod.Spec.Containers[0], size)
	if zones := c.Shape.AvailabilityZones.List(); len(zones) > 0 {
		pod.Annotations[ZonesAnnotation] = strings.Join(zones, ",")
		pod.Spec.Affinity = within(pod.Spec.Affinity, zones)
	}
	return pod
}

func orMade(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// podName is the name of the pod of a replica: the same whoever makes it, and however often.
func podName(group, replica string) string { return group + "-" + replica }

// reasonOf names the strategies that want a replica.
func reasonOf(c strategy.Create) string {
	words := make([]string, 0, len(c.Reasons))
	for _, reason := range c.Reasons {
		words = append(words, reason.String())
	}
	return strings.Join(words, "; ")
}

// sized gives a container what its size says.
func sized(c *corev1.Container, size Size) {
	for _, side := range []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits} {
		if *side == nil {
			*side = corev1.ResourceList{}
		}
		(*side)[corev1.ResourceCPU], (*side)[corev1.ResourceMemory] = size.CPU.DeepCopy(), size.Memory.DeepCopy()
	}
}

// within adds to what a pod says of nodes that they are to be in one of the zones.
func within(affinity *corev1.Affinity, zones []string) *corev1.Affinity {
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	for i := range (*required).NodeSelectorTerms { // Each of them is enough, so each has to say it.
		term := &(*required).NodeSelectorTerms[i]
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones,
		})
	}
	return affinity
}

// shapeOf is the shape that a pod was made in.
func shapeOf(pod *corev1.Pod) strategy.Shape {
	return strategy.Shape{
		Size: pod.Labels[SizeLabel], Template: pod.Labels[TemplateLabel],
		AvailabilityZones: strategy.MakeZones(strings.Split(pod.Annotations[ZonesAnnotation], ",")...),
	}
}

// replicaOf is a pod as the kernel sees it. A pod whose label was taken off is known by the pod's own name.
func replicaOf(group string, pod *corev1.Pod) strategy.Replica {
	return strategy.Replica{ID: strategy.ReplicaID(pod.UID), Name: replicaName(group, pod), Shape: shapeOf(pod)}
}

// replicaName is read from the pod's own name, which cannot be changed.
func replicaName(group string, pod *corev1.Pod) string {
	if name, ok := strings.CutPrefix(pod.Name, group+"-"); ok {
		return name
	}
	return pod.Name
}

// The states of a group's pods.

func dead(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

func going(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func ready(pod *corev1.Pod) bool { return !going(pod) && !dead(pod) && podutil.IsPodReady(pod) }

// unplaced tells since when a pod finds no node, and why.
func unplaced(pod *corev1.Pod) (since time.Time, why string, yes bool) {
	_, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || going(pod) || dead(pod) {
		return time.Time{}, "", false
	}
	return c.LastTransitionTime.Time, c.Message, true
}

// living are the pods that count as replicas, in the order of their names.
func living(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return going(p) || dead(p) })
}

// readyOf counts the ready pods of a shape.
func readyOf(pods []*corev1.Pod, shape strategy.Shape) (n int) {
	for _, pod := range pods {
		if ready(pod) && shapeOf(pod) == shape {
			n++
		}
	}
	return n
}
