package core

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions are those the kubelet owns, followed by those of others as they are in s.
func (m *Machine) conditions(s v1.PodStatus, now time.Time) []v1.PodCondition {
	ready := m.containersReady(s)
	own := []v1.PodCondition{
		condition(v1.PodReadyToStartContainers, m.sandbox.progress == done && !m.sandboxBroken, "", ""),
		m.initializedCondition(s),
		m.readyCondition(s, ready),
		ready,
	}
	var out []v1.PodCondition
	for _, c := range own {
		out = append(out, m.carryOver(c, s.Conditions, now))
	}
	scheduled := false
	for _, c := range s.Conditions {
		if !contains(own, c.Type) {
			out = append(out, c)
			scheduled = scheduled || c.Type == v1.PodScheduled
		}
	}
	if !scheduled {
		out = append(out, m.carryOver(condition(v1.PodScheduled, true, "", ""), nil, now))
	}
	return out
}

// carryOver keeps the transition time of a condition whose status has not changed.
func (m *Machine) carryOver(c v1.PodCondition, before []v1.PodCondition, now time.Time) v1.PodCondition {
	c.ObservedGeneration = m.pod.Generation
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	for _, list := range [][]v1.PodCondition{m.lastWritten.Conditions, before} {
		for _, b := range list {
			if b.Type == c.Type && b.Status == c.Status {
				c.LastTransitionTime = b.LastTransitionTime
				return c
			}
		}
	}
	return c
}

func contains(list []v1.PodCondition, t v1.PodConditionType) bool {
	for _, c := range list {
		if c.Type == t {
			return true
		}
	}
	return false
}

func condition(t v1.PodConditionType, status bool, reason, message string) v1.PodCondition {
	c := v1.PodCondition{Type: t, Status: v1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status, c.Reason, c.Message = v1.ConditionTrue, "", ""
	}
	return c
}

func (m *Machine) initializedCondition(s v1.PodStatus) v1.PodCondition {
	if s.Phase == v1.PodSucceeded {
		c := condition(v1.PodInitialized, true, "", "")
		c.Reason = "PodCompleted"
		return c
	}
	var missing []string
	for _, c := range m.containers {
		if c.role == initRole && !m.isReady(c) || c.role == sidecarRole && !(c.running() && c.started) {
			missing = append(missing, c.spec.Name)
		}
	}
	return condition(v1.PodInitialized, len(missing) == 0 || m.mainsStarted(), "ContainersNotInitialized",
		fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(missing, " ")))
}

func (m *Machine) containersReady(s v1.PodStatus) v1.PodCondition {
	if over := m.overCondition(v1.ContainersReady, s); over != nil {
		return *over
	}
	var unready []string
	for _, c := range m.containers {
		if (c.role == mainRole || c.role == sidecarRole) && !m.isReady(c) {
			unready = append(unready, c.spec.Name)
		}
	}
	return condition(v1.ContainersReady, len(unready) == 0, "ContainersNotReady",
		fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")))
}

// overCondition is the condition of a pod that has ended, nil for others.
func (m *Machine) overCondition(t v1.PodConditionType, s v1.PodStatus) *v1.PodCondition {
	var c v1.PodCondition
	switch s.Phase {
	case v1.PodSucceeded:
		c = condition(t, false, "PodCompleted", "")
	case v1.PodFailed:
		c = condition(t, false, "PodFailed", "")
	default:
		return nil
	}
	return &c
}

func (m *Machine) readyCondition(s v1.PodStatus, containers v1.PodCondition) v1.PodCondition {
	if containers.Status != v1.ConditionTrue {
		containers.Type = v1.PodReady
		return containers
	}
	for _, g := range m.pod.Spec.ReadinessGates {
		status := v1.ConditionFalse
		message := fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType)
		for _, c := range s.Conditions {
			if c.Type == g.ConditionType {
				status = c.Status
				message = fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %s", g.ConditionType, c.Status)
			}
		}
		if status != v1.ConditionTrue {
			return condition(v1.PodReady, false, "ReadinessGatesNotReady", message)
		}
	}
	return condition(v1.PodReady, true, "", "")
}
