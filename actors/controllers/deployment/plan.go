package deployment

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
)

// observed is what one plan is made from. Objects are shared and not changed.
type observed struct {
	deployment *appsv1.Deployment
	// sets are the ReplicaSets the Deployment owns.
	sets []*appsv1.ReplicaSet
	// oldPods tells whether a pod of another template than the wanted one may still run; asked only for Recreate.
	oldPods bool
	now     time.Time
}

// replicaSet is one ReplicaSet as the plan changes it.
type replicaSet struct {
	*appsv1.ReplicaSet
	// before is the stored version, nil for one to be created.
	before *appsv1.ReplicaSet
}

func (s *replicaSet) size() int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}

// available is how many pods can be relied on: no more than the set asks for, whatever its status still says.
func (s *replicaSet) available() int32 { return min(s.Status.AvailableReplicas, s.size()) }

// sizeBefore is the stored size, zero for a set to be created.
func (s *replicaSet) sizeBefore() int32 {
	if s.before == nil || s.before.Spec.Replicas == nil {
		return 0
	}
	return *s.before.Spec.Replicas
}

// changed tells whether the plan changed a stored set.
func (s *replicaSet) changed() bool {
	return s.before != nil && !(apiequality.Semantic.DeepEqual(s.before.Spec, s.Spec) &&
		apiequality.Semantic.DeepEqual(s.before.Annotations, s.Annotations))
}

// plan is what to do about a Deployment. Its deployment carries the wanted status and revision.
type plan struct {
	observed
	// deployment is the copy that carries the wanted status and annotations.
	deployment *appsv1.Deployment
	// sets are all sets, changed as wanted; current is the one with the wanted template, nil when there is none; old are the others.
	sets    []*replicaSet
	current *replicaSet
	old     []*replicaSet
	// remove are the sets to delete.
	remove []*replicaSet
	// after asks for another pass, zero for none.
	after time.Duration
}

// decide makes the plan.
func decide(o observed) (*plan, error) {
	p := newPlan(o)
	p.findCurrent()
	if o.deployment.DeletionTimestamp != nil {
		p.countPods()
		return p, nil
	}
	p.notePause()
	p.syncRevision()
	switch {
	case o.deployment.Spec.Paused:
		p.scale()
		p.trimHistory()
		p.countPods()
	case p.scalingEvent():
		p.scale()
		p.countPods()
	case o.deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		p.recreate()
		p.noteRollout()
	case o.deployment.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		p.roll()
		p.noteRollout()
	default:
		return nil, fmt.Errorf("cannot roll out deployment %s/%s: unknown strategy %q", o.deployment.Namespace, o.deployment.Name, o.deployment.Spec.Strategy.Type)
	}
	return p, nil
}

func newPlan(o observed) *plan {
	p := &plan{observed: o, deployment: o.deployment.DeepCopy()}
	if p.deployment.Spec.Replicas == nil {
		one := int32(1)
		p.deployment.Spec.Replicas = &one
	}
	for _, set := range o.sets {
		copied := set.DeepCopy()
		if copied.Spec.Replicas == nil {
			one := int32(1)
			copied.Spec.Replicas = &one
		}
		p.sets = append(p.sets, &replicaSet{ReplicaSet: copied, before: set})
	}
	return p
}

func (p *plan) replicas() int32       { return *p.deployment.Spec.Replicas }
func (p *plan) maxSurge() int32       { return util.MaxSurge(*p.deployment) }
func (p *plan) maxUnavailable() int32 { return util.MaxUnavailable(*p.deployment) }

// total is the sum of all wanted sizes.
func (p *plan) total() int32 {
	var n int32
	for _, set := range p.sets {
		n += set.size()
	}
	return n
}

// resize gives a set a size and notes the Deployment's own size on it, by which later scaling is told from rolling.
func (p *plan) resize(set *replicaSet, size int32) {
	set.Spec.Replicas = &size
	util.SetReplicasAnnotations(set.ReplicaSet, p.replicas(), p.replicas()+p.maxSurge())
}

// statusChanged tells whether the Deployment has to be written.
func (p *plan) statusChanged() bool {
	return !apiequality.Semantic.DeepEqual(p.observed.deployment.Status, p.deployment.Status) ||
		p.observed.deployment.Annotations[util.RevisionAnnotation] != p.deployment.Annotations[util.RevisionAnnotation]
}

// scaled describes a change of size as upstream's Event does; empty when the size stays.
func (s *replicaSet) scaled() string {
	from, to := s.sizeBefore(), s.size()
	switch {
	case from < to:
		return fmt.Sprintf("Scaled up replica set %s from %d to %d", s.Name, from, to)
	case from > to:
		return fmt.Sprintf("Scaled down replica set %s from %d to %d", s.Name, from, to)
	}
	return ""
}

// condition makes a condition as of the plan's time.
func (p *plan) condition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) appsv1.DeploymentCondition {
	c := util.NewDeploymentCondition(kind, status, reason, message)
	c.LastUpdateTime.Time, c.LastTransitionTime.Time = p.now, p.now
	return *c
}
