package deployment

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
)

// TestRollingKeepsItsLimits rolls random Deployments through random readiness and lagging statuses: the sum of sizes never passes
// replicas + maxSurge, and pods that can be relied on never fall below replicas - maxUnavailable once they were there.
func TestRollingKeepsItsLimits(t *testing.T) {
	for seed := range int64(120) {
		replicas := int32(seed%13) + 1
		surge, unavailable := intstr.FromInt32(int32(seed)%4), intstr.FromInt32(int32(seed/4)%4)
		if seed%3 == 0 {
			surge, unavailable = intstr.FromString("25%"), intstr.FromString("25%")
		}
		w := newWorld(t, seed, replicas, surge, unavailable)
		w.settle()
		for version := 2; version < 5; version++ {
			w.d = w.d.DeepCopy()
			w.d.Spec.Template, w.d.Generation = template(fmt.Sprint("v", version)), w.d.Generation+1
			w.rollUnderWatch(seed)
		}
		w.settle()
		if p := w.plan(); !util.DeploymentComplete(p.deployment, &p.deployment.Status) || p.current.size() != replicas {
			t.Fatalf("seed %d: not complete: %s", seed, w)
		}
	}
}

func (w *world) rollUnderWatch(seed int64) {
	w.t.Helper()
	most := int(*w.d.Spec.Replicas + util.MaxSurge(*w.d))
	least := int(*w.d.Spec.Replicas - util.MaxUnavailable(*w.d))
	for range 60 {
		if w.random.Intn(2) == 0 {
			w.step()
		} else {
			w.chance()
		}
		size, ready := w.totals()
		if size > most {
			w.t.Fatalf("seed %d: %d pods wanted, limit %d: %s", seed, size, most, w)
		}
		if ready < least {
			w.t.Fatalf("seed %d: %d pods ready, least %d: %s", seed, ready, least, w)
		}
	}
}

func TestScalingDuringARolloutKeepsTheSum(t *testing.T) {
	for seed := range int64(60) {
		w := newWorld(t, seed, 10, intstr.FromInt32(3), intstr.FromInt32(2))
		w.settle()
		w.d = w.d.DeepCopy()
		w.d.Spec.Template, w.d.Generation = template("v2"), 2
		w.step()
		for _, set := range w.sets {
			w.act(set)
			w.report(set)
		}
		size := int32(seed%25) + 1
		w.d = w.d.DeepCopy()
		w.d.Spec.Replicas, w.d.Generation = &size, 3
		w.step()
		if total, _ := w.totals(); total != int(size+3) {
			t.Fatalf("seed %d: scaled to %d, sum is %d: %s", seed, size, total, w)
		}
		w.settle()
		if total, ready := w.totals(); total != int(size) || ready != int(size) {
			t.Fatalf("seed %d: settled at %s", seed, w)
		}
	}
}

func rolling(t *testing.T) *world {
	return newWorld(t, 1, 3, intstr.FromString("25%"), intstr.FromString("25%"))
}

func (w *world) deploy(image string) {
	w.d = w.d.DeepCopy()
	w.d.Spec.Template, w.d.Generation = template(image), w.d.Generation+1
}

func TestRevisionsCountUpAndUndoReusesASet(t *testing.T) {
	w := rolling(t)
	w.settle()
	first := w.sets[0].Name
	w.deploy("v2")
	w.settle()
	w.deploy("v1")
	w.settle()
	if got := w.d.Annotations[util.RevisionAnnotation]; got != "3" {
		t.Errorf("revision %q, want 3", got)
	}
	p := w.plan()
	if p.current.Name != first || p.current.Annotations[util.RevisionHistoryAnnotation] != "1" {
		t.Errorf("current %s, history %q", p.current.Name, p.current.Annotations[util.RevisionHistoryAnnotation])
	}
}

func TestHistoryIsTrimmed(t *testing.T) {
	w := rolling(t)
	for version := range 6 {
		w.deploy(fmt.Sprint("v", version))
		w.settle()
	}
	if len(w.sets) != 3 {
		t.Errorf("%d sets are kept, want the current one and 2: %s", len(w.sets), w)
	}
}

func TestRecreateWaitsForOldPods(t *testing.T) {
	w := rolling(t)
	w.d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	w.settle()
	w.deploy("v2")
	w.step()
	if size, _ := w.totals(); size != 0 || len(w.sets) != 1 {
		t.Fatalf("old pods are not gone, yet: %s", w)
	}
	w.step()
	if len(w.sets) != 1 {
		t.Fatalf("a set was made beside old pods: %s", w)
	}
	w.settle()
	if len(w.sets) != 2 || *w.plan().current.Spec.Replicas != 3 {
		t.Errorf("not recreated: %s", w)
	}
}

func TestPauseStopsTheRolloutButScales(t *testing.T) {
	w := rolling(t)
	w.settle()
	w.d = w.d.DeepCopy()
	five := int32(5)
	w.d.Spec.Paused, w.d.Spec.Replicas = true, &five
	w.deploy("v2")
	w.settle()
	if len(w.sets) != 1 || *w.sets[0].Spec.Replicas != 5 {
		t.Fatalf("paused: %s", w)
	}
	if c := util.GetDeploymentCondition(w.d.Status, appsv1.DeploymentProgressing); c == nil || c.Reason != util.PausedDeployReason {
		t.Errorf("condition %+v", c)
	}
	w.d = w.d.DeepCopy()
	w.d.Spec.Paused = false
	w.settle()
	if c := util.GetDeploymentCondition(w.d.Status, appsv1.DeploymentProgressing); c == nil || c.Reason != util.NewRSAvailableReason {
		t.Errorf("condition after resume %+v", c)
	}
}

func TestProgressDeadline(t *testing.T) {
	w := rolling(t)
	p := w.step()
	if c := util.GetDeploymentCondition(p.deployment.Status, appsv1.DeploymentProgressing); c.Reason != util.NewReplicaSetReason {
		t.Fatalf("condition %+v", c)
	}
	if p.after < 600*time.Second || p.after > 602*time.Second {
		t.Errorf("looks again after %v", p.after)
	}
	w.now = w.now.Add(601 * time.Second)
	p = w.step()
	c := util.GetDeploymentCondition(p.deployment.Status, appsv1.DeploymentProgressing)
	if c.Reason != util.TimedOutReason || c.Status != corev1.ConditionFalse || p.after != 0 {
		t.Fatalf("condition %+v, again after %v", c, p.after)
	}
	if p = w.step(); p.statusChanged() {
		t.Error("a timed out rollout is written again and again")
	}
	w.settle()
	if c := util.GetDeploymentCondition(w.d.Status, appsv1.DeploymentProgressing); c.Reason != util.NewRSAvailableReason {
		t.Errorf("late success: %+v", c)
	}
}

func TestFailureOfASetIsCarriedOver(t *testing.T) {
	w := rolling(t)
	w.step()
	w.sets[0].Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota"}}
	p := w.step()
	if c := util.GetDeploymentCondition(p.deployment.Status, appsv1.DeploymentReplicaFailure); c == nil || c.Message != "quota" {
		t.Errorf("condition %+v", c)
	}
}

func TestDeletedDeploymentOnlyCounts(t *testing.T) {
	w := rolling(t)
	w.settle()
	w.deploy("v2")
	now := metav1.NewTime(w.now)
	w.d.DeletionTimestamp = &now
	p := w.plan()
	if changes(p) || p.deployment.Status.ObservedGeneration != w.d.Generation {
		t.Errorf("acted on a deployment that is going away")
	}
}

func TestUnknownStrategyIsRefused(t *testing.T) {
	w := rolling(t)
	w.d.Spec.Strategy.Type = "Wrong"
	if _, err := decide(observed{deployment: w.d, now: w.now}); err == nil {
		t.Error("no error")
	}
}

func TestCollisionCountChangesTheName(t *testing.T) {
	w := rolling(t)
	first := w.plan().current.Name
	one := int32(1)
	w.d.Status.CollisionCount = &one
	if second := w.plan().current.Name; second == first {
		t.Errorf("both are %s", first)
	}
	if n := len(setName(string(make([]byte, 400)), "abc")); n != 253 {
		t.Errorf("a long name has %d characters", n)
	}
}
