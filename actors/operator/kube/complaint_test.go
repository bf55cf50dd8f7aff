package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/actors/hotloop"
	"github.com/nodeactor/nodeactor/supervision"
)

func crashed(parked bool) *complaint {
	return &complaint{
		fault:  &supervision.Fault{Kind: supervision.Panic, Message: "job pass", Err: errors.New("boom\nand its stack")},
		faults: 3, parked: parked, next: time.Unix(1e9, 0),
	}
}

func TestOneConditionSpeaksForAllControllers(t *testing.T) {
	trip := &hotloop.Trip{
		Reason: hotloop.MutualUndo, Writer: hotloop.Writer{Name: "c", Manifest: "ns:a"}, Other: hotloop.Writer{Name: "alice with kubectl"},
		Object: hotloop.Object{Resource: "things", Namespace: "ns", Name: "a"}, Until: time.Unix(1e9, 0), Strikes: 2,
	}
	health, hot := summary(map[string]*complaint{
		"a": {failure: errors.New("no such image"), failures: 5}, "b": crashed(true), "c": {trip: trip}, "d": {},
	})
	if health.Status != corev1.ConditionFalse || health.Reason != ReasonCrashLoop || strings.Contains(health.Message, "stack\n") {
		t.Errorf("health is %+v", health)
	}
	says := accused(health.Message)
	if len(says) != 2 || says["a"] != "no such image" || !strings.HasPrefix(says["b"], "Panic in job pass (stack ") ||
		!strings.HasSuffix(says["b"], "boom; failed 3 times, next try 2001-09-09T01:46:40Z") {
		t.Errorf("it says %q", says)
	}
	want := "reconciler c of ns:a and alice with kubectl undo each other at things ns/a: paused until 2001-09-09T01:46:40Z (trip 2)"
	if hot.Status != corev1.ConditionTrue || hot.Reason != "MutualUndo" || hot.Message != want {
		t.Errorf("the loop is %+v", hot)
	}
	if health, _ := summary(map[string]*complaint{"b": crashed(false)}); health.Reason != ReasonRestarting {
		t.Errorf("before it is parked the reason is %s", health.Reason)
	}
	health, hot = summary(map[string]*complaint{"d": {}})
	if health.Status != corev1.ConditionTrue || hot.Status != corev1.ConditionFalse {
		t.Errorf("of the healthy it says %+v and %+v", health, hot)
	}
}

func TestOnlyBadNewsComesFirst(t *testing.T) {
	p := &patient{complaints: map[string]*complaint{"a": {}}, told: map[string]condition{}}
	if changed, _ := p.news(); len(changed) != 0 {
		t.Errorf("an object that was always healthy is told %v", changed)
	}
	p.complaints["a"] = crashed(false)
	changed, moved := p.news()
	if len(changed) != 1 || changed[0].Type != ConditionHealthy || !moved[ConditionHealthy] {
		t.Fatalf("told %v, moved %v", changed, moved)
	}
	p.told[ConditionHealthy] = changed[0]
	if again, _ := p.news(); len(again) != 0 {
		t.Errorf("told again: %v", again)
	}
	p.complaints["a"].faults++
	if changed, moved = p.news(); len(changed) != 1 || moved[ConditionHealthy] {
		t.Errorf("another failure is told as %v, moved %v", changed, moved)
	}
}

func TestWhatMendsAManifest(t *testing.T) {
	source := cachetest.NewMemory()
	record := func(change func(*appsv1.Deployment)) cache.Record {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u"}}
		change(d)
		cachetest.Put(source, d)
		r, _ := source.Get(deploymentKind.Key("ns", "a"))
		return r
	}
	before := record(func(*appsv1.Deployment) {})
	two := int32(2)
	for name, c := range map[string]struct {
		change func(*appsv1.Deployment)
		mends  bool
	}{
		"status":         {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, false},
		"managed fields": {func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, false},
		"spec":           {func(d *appsv1.Deployment) { d.Spec.Replicas = &two }, true},
		"annotation":     {func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, true},
		"label":          {func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, true},
	} {
		if got := mends(&cache.Change{Old: before, New: record(c.change)}); got != c.mends {
			t.Errorf("a change of its %s mends: %v", name, got)
		}
	}
	if !mends(&cache.Change{Old: before}) {
		t.Error("its end does not wake it")
	}
}
