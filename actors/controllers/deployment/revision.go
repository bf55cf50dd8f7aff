package deployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	labelsutil "k8s.io/kubernetes/pkg/util/labels"
)

// revisionHistoryChars bounds the annotation that lists the revisions a set has served before; upstream's figure.
const revisionHistoryChars = 2000

// findCurrent finds the oldest set with the wanted template.
func (p *plan) findCurrent() {
	plain := make([]*appsv1.ReplicaSet, len(p.sets))
	for i, set := range p.sets {
		plain[i] = set.ReplicaSet
	}
	found := util.FindNewReplicaSet(p.deployment, plain)
	for _, set := range p.sets {
		if set.ReplicaSet == found {
			p.current = set
		} else {
			p.old = append(p.old, set)
		}
	}
	slices.SortFunc(p.old, oldestFirst)
}

func oldestFirst(a, b *replicaSet) int {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// nextRevision is one more than the highest of the old sets.
func (p *plan) nextRevision() string {
	var highest int64
	for _, set := range p.old {
		if n, err := util.Revision(set.ReplicaSet); err == nil {
			highest = max(highest, n)
		}
	}
	return strconv.FormatInt(highest+1, 10)
}

// syncRevision numbers the current set, copies the Deployment's annotations to it and its number back.
func (p *plan) syncRevision() {
	if p.current == nil {
		return
	}
	util.SetNewReplicaSetAnnotations(quiet, p.deployment, p.current.ReplicaSet, p.nextRevision(), true, revisionHistoryChars)
	p.current.Spec.MinReadySeconds = p.deployment.Spec.MinReadySeconds
	util.SetDeploymentRevision(p.deployment, p.current.Annotations[util.RevisionAnnotation])
	if util.HasProgressDeadline(p.deployment) && util.GetDeploymentCondition(p.deployment.Status, appsv1.DeploymentProgressing) == nil {
		p.setCondition(p.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, util.FoundNewRSReason,
			fmt.Sprintf("Found new replica set %q", p.current.Name)))
	}
}

// create adds a set with the wanted template to the plan, sized by the strategy.
func (p *plan) create() {
	d := p.deployment
	template := *d.Spec.Template.DeepCopy()
	hash := controller.ComputeHash(&template, d.Status.CollisionCount)
	template.Labels = labelsutil.CloneAndAddLabel(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set := &replicaSet{ReplicaSet: &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: setName(d.Name, hash), Namespace: d.Namespace, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind.GroupVersionKind())},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Template: template,
			Selector: labelsutil.CloneSelectorAndAddLabel(d.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash),
		},
	}}
	p.sets, p.current = append(p.sets, set), set
	util.SetNewReplicaSetAnnotations(quiet, d, set.ReplicaSet, p.nextRevision(), false, revisionHistoryChars)
	util.SetDeploymentRevision(d, set.Annotations[util.RevisionAnnotation])
	if util.HasProgressDeadline(d) {
		p.setCondition(p.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, util.NewReplicaSetReason,
			fmt.Sprintf("Created new replica set %q", set.Name)))
	}
}

// setName joins the Deployment's name and the hash, shortening the former where the API's limit demands it.
func setName(deployment, hash string) string {
	room := validation.DNS1123SubdomainMaxLength - 1 - len(hash)
	return deployment[:min(len(deployment), room)] + "-" + hash
}

// quiet is a context for library calls that only log through it.
var quiet = klog.NewContext(context.Background(), klog.LoggerWithValues(klog.Background()))
