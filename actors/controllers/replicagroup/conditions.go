package replicagroup

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// Conditions of a group.
const (
	// ConditionAccepted: the spec is in force. While it is not, the last one that was is.
	ConditionAccepted = "Accepted"
	// ConditionReady: as many replicas of what is realized are ready as there should be.
	ConditionReady = "Ready"
	// ConditionReconfiguring: a change of shape is in progress; its reason tells how the last one ended.
	ConditionReconfiguring = "Reconfiguring"
	// ConditionExhausted: there is no room for a replica.
	ConditionExhausted = "Exhausted"
	// ConditionReplicaFailure: a replica cannot be made for another reason.
	ConditionReplicaFailure = "ReplicaFailure"
)

// set writes a condition, and tells whether it has become another one.
func (p *pass) set(s *Status, kind string, yes bool, reason, message string) (changed bool) {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: p.generation,
		LastTransitionTime: metav1.NewTime(p.clock.Now().Truncate(1e9)),
	}
	if yes {
		c.Status = metav1.ConditionTrue
	}
	i := slices.IndexFunc(s.Conditions, func(old metav1.Condition) bool { return old.Type == kind })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return true
	}
	old := s.Conditions[i]
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	s.Conditions[i] = c
	return old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
}

// setReconfiguring tells of the record, in the same write.
func (p *pass) setReconfiguring(s *Status, d strategy.Durable, audits []strategy.Audit) {
	r, ok := d.Reconfiguration.Get()
	if !ok {
		p.set(s, ConditionReconfiguring, false, "NoChange", "the shape was not changed yet")
		return
	}
	text := fmt.Sprintf("to %s, from %s until %s, then %s", r.Target, r.Started, r.Deadline, r.OnTimeout)
	if slices.ContainsFunc(audits, func(a strategy.Audit) bool { return a.Forced }) {
		text += "; it was forced, the target was not ready"
	}
	old := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == ConditionReconfiguring })
	if old >= 0 && s.Conditions[old].Reason == r.Status.String() && r.Status != strategy.InProgress && len(audits) == 0 {
		s.Conditions[old].ObservedGeneration = p.generation // How it ended stays to be read.
		return
	}
	p.set(s, ConditionReconfiguring, r.Status == strategy.InProgress, r.Status.String(), text)
}

// setConditions tells how the group does, with an Event where that has become worse.
func (p *pass) setConditions(s *Status, d strategy.Durable, begun bool, pods []*corev1.Pod) {
	p.setTrouble(s, ConditionAccepted, p.unaccepted, false, "SpecAccepted")
	p.setTrouble(s, ConditionReplicaFailure, p.refused, true, "AllMade")
	var full *refusal
	if p.noRoom != "" {
		full = refuse("NoRoom", "%s", p.noRoom)
	}
	p.setTrouble(s, ConditionExhausted, full, true, "HasRoom")
	n, want := readyOf(pods, d.Config.Shape), d.Config.ReplicationFactor
	reason := "AllReady"
	if !begun || n < want {
		reason = "ReplicasNotReady"
	}
	p.set(s, ConditionReady, begun && n >= want, reason, fmt.Sprintf("%d of %d replicas of the realized shape are ready", n, want))
}

// setTrouble writes a condition that is bad when it is trouble; otherwise it says well.
func (p *pass) setTrouble(s *Status, kind string, trouble *refusal, bad bool, well string) {
	if trouble == nil {
		p.set(s, kind, !bad, well, "")
		return
	}
	if p.set(s, kind, bad, trouble.reason, trouble.message) {
		p.event(corev1.EventTypeWarning, trouble.reason, "%s", trouble.message)
	}
}
