package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/features"
)

// statusOf is the status that what is observed and the outcome of acting on it call for.
func statusOf(o observed, acted error) appsv1.ReplicaSetStatus {
	status := *o.set.Status.DeepCopy()
	status.ObservedGeneration = o.set.Generation
	status.Replicas = int32(len(o.active))
	status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	template := labels.SelectorFromSet(o.set.Spec.Template.Labels)
	for _, pod := range o.active {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if podutil.IsPodReady(pod) {
			status.ReadyReplicas++
		}
		if podutil.IsPodAvailable(pod, o.set.Spec.MinReadySeconds, metav1.NewTime(o.now)) {
			status.AvailableReplicas++
		}
	}
	status.TerminatingReplicas = nil
	if utilfeature.DefaultFeatureGate.Enabled(features.DeploymentReplicaSetTerminatingReplicas) {
		n := int32(len(o.terminating))
		status.TerminatingReplicas = &n
	}
	status.Conditions = conditionsOf(o, acted)
	return status
}

// conditionsOf sets or clears ReplicaFailure; the first reason stays until acting succeeds.
func conditionsOf(o observed, acted error) []appsv1.ReplicaSetCondition {
	isFailure := func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }
	conditions := slices.Clone(o.set.Status.Conditions)
	if acted == nil {
		return slices.DeleteFunc(conditions, isFailure)
	}
	if slices.ContainsFunc(conditions, isFailure) {
		return conditions
	}
	reason := "FailedDelete"
	if len(o.active) < wanted(o.set) {
		reason = "FailedCreate"
	}
	return append(conditions, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(o.now), Reason: reason, Message: acted.Error(),
	})
}

func sameStatus(a, b appsv1.ReplicaSetStatus) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// nextAvailable is how long until the next ready pod has been ready for minReadySeconds; zero when none waits for that.
func nextAvailable(o observed) time.Duration {
	var next time.Duration
	for _, pod := range o.active {
		_, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady)
		if ready == nil || ready.Status != corev1.ConditionTrue {
			continue
		}
		hold := time.Duration(o.set.Spec.MinReadySeconds) * time.Second
		if left := ready.LastTransitionTime.Add(hold).Sub(o.now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}
