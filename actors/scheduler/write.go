package scheduler

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bound is the outcome of storing one binding.
type bound struct {
	pod  *v1.Pod
	node string
	err  error
}

// gone tells that the pod no longer exists, so there is nothing to try again.
func (b bound) gone() bool { return apierrors.IsNotFound(b.err) }

// bind has the binding stored.
func (s *scheduler) bind(pod *v1.Pod, node string) {
	client := s.deps.Client
	s.binds.add(func(ctx context.Context) any {
		binding := &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: node},
		}
		return bound{pod, node, client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{})}
	}, s.now)
}

// report says in the pod's condition and in an Event why it fits nowhere, unless that is what the condition says already. nominated
// is the node on which room is being made, empty when there is none.
func (s *scheduler) report(pod *v1.Pod, message, nominated string) {
	news := !saysAlready(pod, message)
	if !news && (nominated == "" || pod.Status.NominatedNodeName == nominated) {
		return
	}
	client, patch := s.deps.Client, unschedulablePatch(pod, message, nominated, metav1.NewTime(s.now))
	s.reports.add(func(ctx context.Context) any {
		// A pod that changes or goes meanwhile is judged again anyway.
		_, _ = client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return nil
	}, s.now)
	if news {
		s.tell(pod, v1.EventTypeWarning, "FailedScheduling", message)
	}
}

func saysAlready(pod *v1.Pod, message string) bool {
	c := scheduledCondition(pod)
	return c != nil && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable && c.Message == message
}

func scheduledCondition(pod *v1.Pod) *v1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == v1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// unschedulablePatch sets PodScheduled to False. The UID keeps it off a pod of the same name that came later; the transition time
// moves only when the status does.
func unschedulablePatch(pod *v1.Pod, message, nominated string, now metav1.Time) []byte {
	condition := v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: now, ObservedGeneration: pod.Generation,
	}
	if c := scheduledCondition(pod); c != nil && c.Status == v1.ConditionFalse {
		condition.LastTransitionTime = c.LastTransitionTime
	}
	return statusPatch(pod, condition, nominated)
}

func statusPatch(pod *v1.Pod, condition v1.PodCondition, nominated string) []byte {
	status := map[string]any{"conditions": []v1.PodCondition{condition}}
	if nominated != "" {
		status["nominatedNodeName"] = nominated
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	return patch
}

func (s *scheduler) tellScheduled(pod *v1.Pod, node string) {
	message := fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
	s.tell(pod, v1.EventTypeNormal, "Scheduled", message)
}

// tell queues an Event; with too many waiting it is dropped.
func (s *scheduler) tell(pod *v1.Pod, kind, reason, message string) {
	if backlog, _ := s.events.waiting(); backlog >= eventBacklogLimit {
		return
	}
	client, event := s.deps.Client, s.eventFor(pod, kind, reason, message)
	s.events.add(func(ctx context.Context) any {
		_, _ = client.CoreV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
		return nil
	}, s.now)
}

func (s *scheduler) eventFor(pod *v1.Pod, kind, reason, message string) *v1.Event {
	at := metav1.NewTime(s.now)
	return &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, s.now.UnixNano())},
		InvolvedObject: v1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: kind, Reason: reason, Message: message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: v1.EventSource{Component: s.deps.Name}, ReportingController: s.deps.Name,
	}
}
