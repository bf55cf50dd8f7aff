package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/controller/deployment/util"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// scalingReason is the reason of Events about changed sizes.
const scalingReason = "ScalingReplicaSet"

// reconciler runs passes over Deployments.
type reconciler struct {
	cache  *cache.Cache
	client kubernetes.Interface
	clock  kube.Clock
	events record.EventRecorder
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	d, ok := cache.Get[*appsv1.Deployment](r.cache, key.Namespace, key.Name)
	if !ok {
		return kube.None(), nil
	}
	if selectsAll(d) {
		return kube.None(), r.refuse(ctx, d)
	}
	o, err := r.observe(ctx, d)
	if err != nil {
		return kube.None(), fmt.Errorf("cannot claim replica sets of deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	p, err := decide(o)
	if err != nil {
		return kube.None(), err
	}
	return kube.Action{After: p.after}, r.execute(ctx, p)
}

// execute writes sets before the status, so that a status never tells of what was not done.
func (r *reconciler) execute(ctx context.Context, p *plan) error {
	if err := r.writeSets(ctx, p); err != nil {
		return err
	}
	for _, set := range p.remove {
		err := r.client.AppsV1().ReplicaSets(set.Namespace).Delete(ctx, set.Name, *metav1.NewPreconditionDeleteOptions(string(set.UID)))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete replica set %s/%s: %w", set.Namespace, set.Name, err)
		}
	}
	return r.writeStatus(ctx, p)
}

// writeSets shrinks before it grows, so that the sum of all sizes stays within the limit at every moment.
func (r *reconciler) writeSets(ctx context.Context, p *plan) error {
	for _, grow := range []bool{false, true} {
		for _, set := range p.sets {
			if (set.size() > set.sizeBefore()) != grow {
				continue
			}
			if err := r.writeSet(ctx, p, set); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reconciler) writeSet(ctx context.Context, p *plan, set *replicaSet) error {
	sets := r.client.AppsV1().ReplicaSets(set.Namespace)
	switch {
	case set.before == nil:
		return r.createSet(ctx, p, set)
	case set.changed():
		if _, err := sets.Update(ctx, set.ReplicaSet, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("cannot update replica set %s/%s: %w", set.Namespace, set.Name, err)
		}
		r.tellScaled(p, set)
	}
	return nil
}

func (r *reconciler) tellScaled(p *plan, set *replicaSet) {
	if message := set.scaled(); message != "" {
		r.events.Event(p.observed.deployment, corev1.EventTypeNormal, scalingReason, message)
	}
}

func (r *reconciler) createSet(ctx context.Context, p *plan, set *replicaSet) error {
	_, err := r.client.AppsV1().ReplicaSets(set.Namespace).Create(ctx, set.ReplicaSet, metav1.CreateOptions{})
	switch {
	case err == nil:
		r.tellScaled(p, set)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.resolveCollision(ctx, p, set)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // every create is refused until the namespace is gone, and the deployment with it
	}
	return r.tellFailed(ctx, p, set, err)
}

// resolveCollision looks at who has the name. Ours with the wanted template: the next pass sees it. Anybody else's: the hash is
// salted by the collision count, which the next pass then names differently.
func (r *reconciler) resolveCollision(ctx context.Context, p *plan, set *replicaSet) error {
	d := p.observed.deployment
	present, err := r.client.AppsV1().ReplicaSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot look at replica set %s/%s: %w", set.Namespace, set.Name, err)
	}
	taken := fmt.Errorf("cannot create replica set %s/%s: %w", set.Namespace, set.Name,
		apierrors.NewConflict(appsv1.Resource("replicasets"), set.Name, fmt.Errorf("the name is taken")))
	if metav1.IsControlledBy(present, d) && util.EqualIgnoreHash(&d.Spec.Template, &present.Spec.Template) {
		return taken
	}
	salted := d.DeepCopy()
	count := int32(1)
	if d.Status.CollisionCount != nil {
		count = *d.Status.CollisionCount + 1
	}
	salted.Status.CollisionCount = &count
	if _, err := r.client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, salted, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot count the collision of replica set %s/%s: %w", set.Namespace, set.Name, err)
	}
	return taken
}

// tellFailed reports a refused set on the Deployment.
func (r *reconciler) tellFailed(ctx context.Context, p *plan, set *replicaSet, cause error) error {
	d := p.observed.deployment
	message := fmt.Sprintf("Failed to create new replica set %q: %v", set.Name, cause)
	r.events.Event(d, corev1.EventTypeWarning, util.FailedRSCreateReason, message)
	if util.HasProgressDeadline(d) {
		told := d.DeepCopy()
		util.SetDeploymentCondition(&told.Status, p.condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, util.FailedRSCreateReason, message))
		if err := r.updateIfChanged(ctx, d, told); err != nil {
			return fmt.Errorf("cannot report on deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	return fmt.Errorf("cannot create replica set %s/%s: %w", set.Namespace, set.Name, cause)
}

func (r *reconciler) updateIfChanged(ctx context.Context, before, after *appsv1.Deployment) error {
	if sameStatus(before, after) {
		return nil
	}
	_, err := r.client.AppsV1().Deployments(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	return err
}

func (r *reconciler) writeStatus(ctx context.Context, p *plan) error {
	if !p.statusChanged() {
		return nil
	}
	_, err := r.client.AppsV1().Deployments(p.deployment.Namespace).UpdateStatus(ctx, p.deployment, metav1.UpdateOptions{})
	return err
}

// refuse tells that a Deployment that selects every pod is not acted on.
func (r *reconciler) refuse(ctx context.Context, d *appsv1.Deployment) error {
	r.events.Event(d, corev1.EventTypeWarning, "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")
	seen := d.DeepCopy()
	seen.Status.ObservedGeneration = d.Generation
	return r.updateIfChanged(ctx, d, seen)
}
