package nodelifecycle

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// parallel is how many pods of one node are marked or evicted at a time.
const parallel = 16

// Heartbeats tells when nodes were last heard of by this process; renewals that it hears never reach the store.
type Heartbeats interface {
	// Last is when a node was last heard of; false when it never was.
	Last(node string) (time.Time, bool)
}

// reconciler runs passes over nodes, and over names of nodes that no longer exist.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	clock  kube.Clock
	events record.EventRecorder
	beats  Heartbeats
	// since is when this controller began to listen.
	since time.Time

	mu sync.Mutex
	// missing is since when a node that has pods is not there.
	missing map[string]time.Time
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	node, ok := cache.Get[*corev1.Node](r.cache, "", key.Name)
	if !ok {
		return r.orphans(ctx, key.Name)
	}
	r.found(key.Name)
	o := observed{node: node, pods: r.cache.PodsOn(node.Name), heard: r.heard(node), now: r.clock.Now()}
	j := decide(o)
	if err := r.execute(ctx, o, j); err != nil {
		return kube.None(), fmt.Errorf("cannot bring node %q in line with its conditions: %w", node.Name, err)
	}
	return kube.Action{After: j.after}, nil
}

// heard is the newest sign of life of a node. Where nobody hears heartbeats, none is ever missed.
func (r *reconciler) heard(node *corev1.Node) time.Time {
	if r.beats == nil {
		return r.clock.Now()
	}
	heard := r.since
	note := func(t time.Time) {
		if t.After(heard) {
			heard = t
		}
	}
	note(node.CreationTimestamp.Time)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			note(c.LastHeartbeatTime.Time)
		}
	}
	if lease, ok := cache.Get[*coordinationv1.Lease](r.cache, corev1.NamespaceNodeLease, node.Name); ok && lease.Spec.RenewTime != nil {
		note(lease.Spec.RenewTime.Time)
	}
	if last, ok := r.beats.Last(node.Name); ok {
		note(last)
	}
	return heard
}

// execute writes conditions, then taints, then acts on pods.
func (r *reconciler) execute(ctx context.Context, o observed, j judgement) error {
	node, err := r.writeConditions(ctx, o, j)
	if err != nil {
		return err
	}
	if err := r.writeTaints(ctx, node, j); err != nil {
		return err
	}
	err = kube.Parallel(ctx, parallel, len(j.silent), func(ctx context.Context, i int) error { return r.unready(ctx, j.silent[i]) })
	if err != nil {
		return err
	}
	return kube.Parallel(ctx, parallel, len(j.evict), func(ctx context.Context, i int) error { return r.evict(ctx, j.evict[i]) })
}

func (r *reconciler) writeConditions(ctx context.Context, o observed, j judgement) (*corev1.Node, error) {
	if apiequality.Semantic.DeepEqual(o.node.Status.Conditions, j.conditions) {
		return o.node, nil
	}
	changed := o.node.DeepCopy()
	changed.Status.Conditions = j.conditions
	written, err := r.client.CoreV1().Nodes().UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err == nil && readiness(o.node.Status.Conditions) == corev1.ConditionTrue {
		r.events.Eventf(o.node, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", o.node.Name)
	}
	return written, err
}

func (r *reconciler) writeTaints(ctx context.Context, node *corev1.Node, j judgement) error {
	if apiequality.Semantic.DeepEqual(node.Spec.Taints, j.taints) {
		return nil
	}
	changed := node.DeepCopy()
	changed.Spec.Taints = j.taints
	_, err := r.client.CoreV1().Nodes().Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// unready takes a pod out of service whose kubelet does not speak any more.
func (r *reconciler) unready(ctx context.Context, pod *corev1.Pod) error {
	changed := pod.DeepCopy()
	for i := range changed.Status.Conditions {
		if c := &changed.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(r.clock.Now())
		}
	}
	_, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err == nil {
		r.events.Event(pod, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	}
	return ignoreGone(err)
}

func (r *reconciler) evict(ctx context.Context, pod *corev1.Pod) error {
	r.events.Eventf(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name)
	return r.disrupt(ctx, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint",
		*metav1.NewPreconditionDeleteOptions(string(pod.UID)))
}

// disrupt says on a pod why it is deleted, then deletes it.
func (r *reconciler) disrupt(ctx context.Context, pod *corev1.Pod, reason, message string, how metav1.DeleteOptions) error {
	if told := withDisruption(pod, reason, message, r.clock.Now()); told != nil {
		if _, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, told, metav1.UpdateOptions{}); err != nil {
			return ignoreGone(err)
		}
	}
	return ignoreGone(r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, how))
}

// withDisruption is a pod with the condition that tells of its disruption; nil when it has it.
func withDisruption(pod *corev1.Pod, reason, message string, now time.Time) *corev1.Pod {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	told := pod.DeepCopy()
	told.Status.Conditions = append(told.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
	return told
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
