package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/features"
)

// countPods brings the counts of the wanted status up to date, and Available with them.
func (p *plan) countPods() {
	status := &p.deployment.Status
	status.ObservedGeneration = p.deployment.Generation
	status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	for _, set := range p.sets {
		status.Replicas += set.Status.Replicas
		status.ReadyReplicas += set.Status.ReadyReplicas
		status.AvailableReplicas += set.Status.AvailableReplicas
	}
	if p.current != nil {
		status.UpdatedReplicas = p.current.Status.Replicas
	}
	status.UnavailableReplicas = max(0, p.total()-status.AvailableReplicas)
	status.TerminatingReplicas = nil
	if utilfeature.DefaultFeatureGate.Enabled(features.DeploymentReplicaSetTerminatingReplicas) {
		status.TerminatingReplicas = util.GetTerminatingReplicaCountForReplicaSets(p.plainSets())
	}
	p.noteAvailability()
}

func (p *plan) plainSets() []*appsv1.ReplicaSet {
	plain := make([]*appsv1.ReplicaSet, len(p.sets))
	for i, set := range p.sets {
		plain[i] = set.ReplicaSet
	}
	return plain
}

func (p *plan) noteAvailability() {
	if p.deployment.Status.AvailableReplicas >= p.replicas()-p.maxUnavailable() {
		p.setCondition(p.condition(appsv1.DeploymentAvailable, corev1.ConditionTrue,
			util.MinimumReplicasAvailable, "Deployment has minimum availability."))
		return
	}
	p.setCondition(p.condition(appsv1.DeploymentAvailable, corev1.ConditionFalse,
		util.MinimumReplicasUnavailable, "Deployment does not have minimum availability."))
}

// noteFailure carries a ReplicaFailure of the current set, else of any, over to the Deployment.
func (p *plan) noteFailure() {
	sets := p.sets
	if p.current != nil {
		sets = append([]*replicaSet{p.current}, sets...)
	}
	for _, set := range sets {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				p.setCondition(util.ReplicaSetToDeploymentCondition(c))
				return
			}
		}
	}
	util.RemoveDeploymentCondition(&p.deployment.Status, appsv1.DeploymentReplicaFailure)
}

func (p *plan) setCondition(c appsv1.DeploymentCondition) {
	util.SetDeploymentCondition(&p.deployment.Status, c)
}
