package replicaset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Unix(1700000000, 0)

func setOf(replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 3},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		}},
	}
}

type change func(*corev1.Pod)

func pod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "web"},
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	for _, c := range changes {
		c(p)
	}
	return p
}

func on(node string) change { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func phase(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func going(p *corev1.Pod) { t := metav1.NewTime(now); p.DeletionTimestamp = &t }

func readySince(ago time.Duration) change {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	}
}

func observe(set *appsv1.ReplicaSet, pods ...*corev1.Pod) observed {
	active, terminating := split(pods)
	return observed{set: set, active: active, terminating: terminating, related: pods, now: now}
}

func TestFinishedAndLeavingPodsAreReplaced(t *testing.T) {
	o := observe(setOf(4), pod("ok"), pod("failed", phase(corev1.PodFailed)), pod("done", phase(corev1.PodSucceeded)), pod("going", going))
	if d := decide(o); d.create != 3 || len(d.remove) != 0 {
		t.Errorf("decided %+v", d)
	}
	status := statusOf(o, nil)
	if status.Replicas != 1 || status.TerminatingReplicas == nil || *status.TerminatingReplicas != 1 || status.ObservedGeneration != 3 {
		t.Errorf("status %+v", status)
	}
}

func TestBurstBoundsAPass(t *testing.T) {
	if d := decide(observe(setOf(100000))); d.create != burst {
		t.Errorf("creates %d", d.create)
	}
	var pods []*corev1.Pod
	for i := range 700 {
		pods = append(pods, pod(fmt.Sprint(i)))
	}
	if d := decide(observe(setOf(0), pods...)); len(d.remove) != burst {
		t.Errorf("deletes %d", len(d.remove))
	}
}

func TestASetOnItsWayOutIsLeftAlone(t *testing.T) {
	set := setOf(3)
	at := metav1.NewTime(now)
	set.DeletionTimestamp = &at
	if d := decide(observe(set)); d.create != 0 {
		t.Errorf("creates %d", d.create)
	}
}

// TestVictims walks down upstream's ranking: each pod is the next to go once those before it are gone.
func TestVictims(t *testing.T) {
	crowded := []*corev1.Pod{
		pod("unplaced"),
		pod("pending", on("a"), phase(corev1.PodPending)),
		pod("unready", on("a"), phase(corev1.PodRunning)),
		pod("cheap", on("b"), readySince(time.Hour), func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: "-5"}
		}),
		pod("crowded", on("a"), readySince(time.Hour)),
		pod("young", on("b"), readySince(time.Minute)),
		pod("old", on("b"), readySince(1000*time.Hour)),
	}
	reversed := make([]*corev1.Pod, len(crowded))
	for i, p := range crowded {
		reversed[len(crowded)-1-i] = p
	}
	o := observe(setOf(1), reversed...)
	o.related = append(o.related, pod("neighbour", on("a"), readySince(time.Hour)), pod("neighbour2", on("a"), readySince(time.Hour)))
	for i, victim := range decide(o).remove {
		if victim != crowded[i] {
			t.Errorf("victim %d is %s, want %s", i, victim.Name, crowded[i].Name)
		}
	}
}

func TestStatusCountsAndConditions(t *testing.T) {
	set := setOf(3)
	set.Spec.MinReadySeconds = 60
	o := observe(set, pod("a", readySince(time.Hour)), pod("b", readySince(20*time.Second)), pod("c"))
	o.active[2].Labels = map[string]string{"other": "label"}
	failed := statusOf(o, errors.New("refused"))
	if failed.Replicas != 3 || failed.ReadyReplicas != 2 || failed.AvailableReplicas != 1 || failed.FullyLabeledReplicas != 2 {
		t.Errorf("counts %+v", failed)
	}
	if next := nextAvailable(o); next != 40*time.Second {
		t.Errorf("next available in %v", next)
	}
	if len(failed.Conditions) != 1 || failed.Conditions[0].Message != "refused" {
		t.Fatalf("conditions %+v", failed.Conditions)
	}
	set.Status = failed
	if again := statusOf(o, errors.New("refused otherwise")); !sameStatus(failed, again) {
		t.Error("a repeated failure is written again")
	}
	if healed := statusOf(o, nil); len(healed.Conditions) != 0 {
		t.Errorf("conditions after success %+v", healed.Conditions)
	}
}
