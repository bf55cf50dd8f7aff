package deployment

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
)

// deadlineSlack is waited beyond the progress deadline, because conditions are stored in whole seconds.
const deadlineSlack = time.Second

// notePause sets Progressing to Unknown when the Deployment is paused or resumed, so that the time of a pause does not count
// against its deadline. A timeout that was reported stays reported.
func (p *plan) notePause() {
	if !util.HasProgressDeadline(p.deployment) {
		return
	}
	c := p.progressing()
	if c != nil && c.Reason == util.TimedOutReason {
		return
	}
	paused, wasPaused := p.deployment.Spec.Paused, c != nil && c.Reason == util.PausedDeployReason
	switch {
	case paused && !wasPaused:
		p.setCondition(p.condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, util.PausedDeployReason, "Deployment is paused"))
	case !paused && wasPaused:
		p.setCondition(p.condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, util.ResumedDeployReason, "Deployment is resumed"))
	}
}

// noteRollout ends a rolling plan: counts, progress, failures, history.
func (p *plan) noteRollout() {
	p.countPods()
	p.noteProgress()
	p.noteFailure()
	if util.DeploymentComplete(p.deployment, &p.deployment.Status) {
		p.trimHistory()
	}
	p.after = p.untilDeadline()
}

func (p *plan) progressing() *appsv1.DeploymentCondition {
	return util.GetDeploymentCondition(p.deployment.Status, appsv1.DeploymentProgressing)
}

// noteProgress tells complete, progressing and timed out apart, in this order. A rollout that was complete before and has no old
// pods is not judged again.
func (p *plan) noteProgress() {
	status := &p.deployment.Status
	if !util.HasProgressDeadline(p.deployment) {
		util.RemoveDeploymentCondition(status, appsv1.DeploymentProgressing)
		return
	}
	before := util.GetDeploymentCondition(p.observed.deployment.Status, appsv1.DeploymentProgressing)
	if status.Replicas == status.UpdatedReplicas && before != nil && before.Reason == util.NewRSAvailableReason && p.sameRevision() {
		return
	}
	switch {
	case util.DeploymentComplete(p.deployment, status):
		p.setCondition(p.progress(corev1.ConditionTrue, util.NewRSAvailableReason, "%s has successfully progressed."))
	case util.DeploymentProgressing(p.observed.deployment, status):
		p.renewProgress(before)
	case p.timedOut():
		p.setCondition(p.progress(corev1.ConditionFalse, util.TimedOutReason, "%s has timed out progressing."))
	}
}

// sameRevision tells whether the plan keeps the revision that was complete before.
func (p *plan) sameRevision() bool {
	return p.observed.deployment.Annotations[util.RevisionAnnotation] == p.deployment.Annotations[util.RevisionAnnotation]
}

// renewProgress notes the time of the latest progress, which a plain change of condition would not for the same reason.
func (p *plan) renewProgress(before *appsv1.DeploymentCondition) {
	c := p.progress(corev1.ConditionTrue, util.ReplicaSetUpdatedReason, "%s is progressing.")
	if before != nil && before.Status == corev1.ConditionTrue {
		c.LastTransitionTime = before.LastTransitionTime
	}
	util.RemoveDeploymentCondition(&p.deployment.Status, appsv1.DeploymentProgressing)
	p.setCondition(c)
}

// progress makes a Progressing condition about the current set, or the Deployment while there is none.
func (p *plan) progress(status corev1.ConditionStatus, reason, format string) appsv1.DeploymentCondition {
	subject := fmt.Sprintf("Deployment %q", p.deployment.Name)
	if p.current != nil {
		subject = fmt.Sprintf("ReplicaSet %q", p.current.Name)
	}
	return p.condition(appsv1.DeploymentProgressing, status, reason, fmt.Sprintf(format, subject))
}

// timedOut tells whether the last sign of progress is older than the deadline.
func (p *plan) timedOut() bool {
	c := p.progressing()
	switch {
	case c == nil || c.Reason == util.NewRSAvailableReason:
		return false
	case c.Reason == util.TimedOutReason:
		return true
	}
	return p.deadline(c).Before(p.now)
}

func (p *plan) deadline(c *appsv1.DeploymentCondition) time.Time {
	return c.LastUpdateTime.Add(time.Duration(*p.deployment.Spec.ProgressDeadlineSeconds) * time.Second)
}

// untilDeadline is how long until a rollout without further progress times out; zero when none is under way.
func (p *plan) untilDeadline() time.Duration {
	c := p.progressing()
	if !util.HasProgressDeadline(p.deployment) || c == nil || c.Reason == util.TimedOutReason ||
		util.DeploymentComplete(p.deployment, &p.deployment.Status) {
		return 0
	}
	return max(0, p.deadline(c).Sub(p.now)) + deadlineSlack
}
