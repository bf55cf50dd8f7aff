package replicagroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/strategy"
)

// steady is a group of so many ready replicas of a size.
func steady(t *testing.T, replicas int, size string) *fake {
	t.Helper()
	f := newFake(t, specOf(replicas, size))
	f.settle(size)
	f.events = nil
	return f
}

func TestF104_TheActorRunsWhollyAgainstAFake(t *testing.T) {
	f := steady(t, 2, "S")
	f.has("r1:S* r2:S*")
	f.record("", "2 x S")
	if next := f.rest(); next != 0 {
		t.Errorf("at rest there is a pass in %v", next)
	}
	f.change(func(s *Spec) { s.Size = "L" })
	f.rest()
	f.has("r1:S* r2:S* r3:L r4:L")
	f.record("InProgress", "2 x S")
	f.settle("L")
	f.has("r3:L* r4:L*")
	f.record("Finalized", "2 x L")
	if c := f.condition(ConditionReady); c.Status != metav1.ConditionTrue {
		t.Errorf("ready: %+v", c)
	}
	for _, words := range [][]string{
		{"ReconfigurationStarted", "2 x L"}, {"ReplicaCreated", "r3", "GracefulReconfiguration"}, {"ReconfigurationFinalized"}, {"ReplicaDropped", "r1", "retired"},
	} {
		if !f.told(words...) {
			t.Errorf("no Event with %q in %q", words, f.events)
		}
	}
}

func TestF102_TheCutOverAndTheEndOfTheOldAreOnePass(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size = "L" })
	f.rest()
	f.kubelet("L")
	before := len(f.writes)
	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}
	f.has("r3:L* r4:L*")
	if got := f.writes[before : before+3]; got[0] != "status" || slices.Contains(got[1:], "status") {
		t.Errorf("wrote %v", got)
	}
}

func TestF105_ASteadyGroupIsNotWritten(t *testing.T) {
	f := steady(t, 2, "S")
	before := len(f.writes)
	for range 10 {
		f.now = f.now.Add(time.Hour)
		if next, err := f.pass(); err != nil || next != 0 {
			t.Fatalf("next pass in %v, %v", next, err)
		}
	}
	if len(f.writes) != before {
		t.Errorf("wrote %v", f.writes[before:])
	}
}

// TestF106_AConcurrentChangeOfTheSpec lets the user change his mind before each write of a pass: what was decided before does no harm.
func TestF106_AConcurrentChangeOfTheSpec(t *testing.T) {
	for n := range 12 {
		f := steady(t, 2, "S")
		f.change(func(s *Spec) { s.Size = "L" })
		f.rest()
		f.kubelet("L")
		writes := 0
		f.before = func(string) {
			if writes++; writes == n+1 {
				f.change(func(s *Spec) { s.Size = "S" })
			}
		}
		_, err := f.pass()
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		f.before = nil
		if writes <= n {
			f.change(func(s *Spec) { s.Size = "S" })
		}
		f.settle("S", "L")
		if got := f.group.Status.Realized.Size; got != "S" {
			t.Errorf("changed before write %d: realized %s", n+1, got)
		}
		if len(f.pods) != 2 {
			t.Errorf("changed before write %d: %d pods", n+1, len(f.pods))
		}
	}
}

// TestF106_AStaleDecisionRealizesNothing lets the user change his mind while the pass looks, so that nothing stored has changed when it
// decides to cut over: that must not happen.
func TestF106_AStaleDecisionRealizesNothing(t *testing.T) {
	for look := 1; look <= 2; look++ {
		f := steady(t, 2, "S")
		f.change(func(s *Spec) { s.Size = "L" })
		f.rest()
		f.kubelet("L")
		left := look
		f.reads = func() {
			if left--; left == 0 {
				f.change(func(s *Spec) { s.Size = "S" })
			}
		}
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}
		f.settle("S", "L")
		f.record("Cancelled", "2 x S")
		f.has("r1:S* r2:S*")
	}
}

// TestF106_TwoActorsAtOnce lets another actor, which was believed dead, do all of a pass while this one looks: the change ends once.
func TestF106_TwoActorsAtOnce(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size = "L" })
	f.rest()
	f.kubelet("L")
	f.reads = func() {
		f.reads = nil
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}
	f.settle("L")
	f.record("Finalized", "2 x L")
	f.has("r3:L* r4:L*")
	ends := 0
	for _, event := range f.events {
		if strings.Contains(event, "ReconfigurationFinalized") {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the change ended %d times", ends)
	}
}

func TestF114_RolledBackAtTheDeadline(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) {
		s.Size, s.Reconfiguration = "L", Reconfigure{Timeout: &metav1.Duration{Duration: time.Minute}}
	})
	next := f.settle("S")
	f.has("r1:S* r2:S* r3:L r4:L")
	if next > 5*time.Second || next == 0 {
		t.Errorf("the next pass is in %v", next)
	}
	f.now = f.now.Add(time.Minute - time.Millisecond)
	if next := f.settle("S"); next > 2*time.Millisecond {
		t.Errorf("just before the deadline the next pass is in %v", next)
	}
	f.record("InProgress", "2 x S")
	f.now = f.now.Add(time.Millisecond)
	f.settle("S")
	f.record("TimedOut", "2 x S")
	f.has("r1:S* r2:S*")
	if !f.told("Warning", "ReconfigurationTimedOut") || f.condition(ConditionReconfiguring).Reason != "TimedOut" {
		t.Errorf("told %q, condition %+v", f.events, f.condition(ConditionReconfiguring))
	}
}

func TestF115_ForcedAtTheDeadline(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) {
		s.Size, s.Reconfiguration = "L", Reconfigure{Timeout: &metav1.Duration{Duration: time.Minute}, OnTimeout: "Commit"}
	})
	f.settle("S")
	f.now = f.now.Add(time.Minute)
	f.settle("S")
	f.record("Finalized", "2 x L")
	f.has("r3:L r4:L")
	if !f.told("ReconfigurationFinalized", "forced") || !strings.Contains(f.condition(ConditionReconfiguring).Message, "forced") {
		t.Errorf("told %q, condition %+v", f.events, f.condition(ConditionReconfiguring))
	}
}

// TestATemplateIsPartOfTheShape: another image goes the same way, and what serves is made anew from what it was made from.
func TestATemplateIsPartOfTheShape(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) {
		s.PodTemplate = json.RawMessage(strings.ReplaceAll(probed, "web:v1", "web:v2"))
	})
	f.rest()
	delete(f.pods, "web-r1")
	f.rest()
	images := map[string]int{}
	for _, pod := range f.pods {
		images[pod.Spec.Containers[0].Image]++
	}
	if images["web:v1"] != 2 || images["web:v2"] != 2 {
		t.Errorf("images %v", images)
	}
	f.settle("S")
	for _, pod := range f.pods {
		if pod.Spec.Containers[0].Image != "web:v2" {
			t.Errorf("pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
		}
	}
	if len(f.revisions) != 1 {
		t.Errorf("%d versions of the template are kept", len(f.revisions))
	}
}

func TestTheSameTemplateWrittenOtherwiseIsNoChange(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) {
		s.PodTemplate = json.RawMessage(`{"spec": {"containers": [ {"image":"web:v1", "readinessProbe":{"httpGet":{"port":80,"path":"/"}}, "name":"web"} ] }, "metadata":{"labels":{"app":"web"}}}`)
	})
	f.settle()
	f.record("", "2 x S")
	f.has("r1:S* r2:S*")
}

// killed is how a pass ends whose process was killed.
var errKilled = errors.New("killed")

// dies runs a pass that is killed before its nth write; false when it came through.
func (f *fake) dies(n int) (died bool) {
	f.Helper()
	left := n
	f.before = func(string) {
		if left--; left < 0 {
			panic(errKilled)
		}
	}
	defer func() {
		f.before = nil
		if p := recover(); p != nil && p != any(errKilled) {
			panic(p)
		} else if p != nil {
			died = true
		}
	}()
	_, err := f.pass()
	if err != nil && !strings.Contains(err.Error(), "killed") && !apierrors.IsConflict(err) {
		f.Fatal(err)
	}
	return err != nil && strings.Contains(err.Error(), "killed")
}

// TestF119_KilledBeforeEachWrite plays a change of size in which each pass is killed before its nth write, for each n.
func TestF119_KilledBeforeEachWrite(t *testing.T) {
	for n := range 12 {
		f := steady(t, 2, "S")
		f.change(func(s *Spec) { s.Size = "L" })
		for range 4 {
			f.dies(n)
			f.serves()
			f.kubelet("S", "L")
		}
		f.settle("S", "L")
		f.record("Finalized", "2 x L")
		if len(f.pods) != 2 {
			t.Errorf("killed before write %d: %d pods in the end", n+1, len(f.pods))
		}
	}
}

// serves holds that two ready replicas of what is realized, or was, are there.
func (f *fake) serves() {
	f.Helper()
	n := 0
	for _, pod := range f.pods {
		if ready(pod) {
			n++
		}
	}
	if n < 2 {
		f.Errorf("%d replicas serve", n)
	}
}

func TestF120_AChangeReturnsAtOnceAndCanBeWaitedFor(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size = "L" }) // That is all that a user does.
	if _, done := f.durable().Settled(f.group.Generation); done {
		t.Error("settled before it began")
	}
	f.rest()
	if c := f.condition(ConditionReconfiguring); c.Status != metav1.ConditionTrue || c.ObservedGeneration != 2 {
		t.Errorf("condition %+v", c)
	}
	f.settle("L")
	if status, done := f.durable().Settled(f.group.Generation); !done || status != strategy.Finalized {
		t.Errorf("settled %s, %v", status, done)
	}
	f.change(func(s *Spec) { s.Replicas = 3 })
	f.settle("L") // Whoever waits for the condition goes by its generation.
	if c := f.condition(ConditionReconfiguring); c.Status != metav1.ConditionFalse || c.ObservedGeneration != 3 || c.Reason != "Finalized" {
		t.Errorf("condition %+v", c)
	}
}

func TestF121_RealizedAndTargetCanBeSeen(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size, s.Replicas = "L", 3 })
	f.rest()
	f.pods["web-r3"].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	f.rest()
	s := f.group.Status
	if s.Ready != "2/2" || s.Replicas != 5 || s.ReadyReplicas != 3 || s.Realized.Size != "S" {
		t.Errorf("status %+v", s)
	}
	r := s.Reconfiguration
	if r == nil || r.Ready != "1/3" || r.Target.Size != "L" || r.Target.Replicas != 3 || r.OnTimeout != "Rollback" || r.Deadline.Sub(r.Started.Time) != strategy.DefaultTimeout {
		t.Errorf("record %+v", r)
	}
	if m := s.Members[2]; m.Name != "r3" || m.Reason != "GracefulReconfiguration" || !m.Ready {
		t.Errorf("member %+v", m)
	}
}

func TestF122_QuotaGivesUpTheChangeAndNotWhatServes(t *testing.T) {
	f := steady(t, 2, "S")
	f.quota = 3
	f.change(func(s *Spec) { s.Size = "L" })
	f.settle("S")
	f.record("ResourceExhausted", "2 x S")
	f.has("r1:S* r2:S*")
	if !f.told("Warning", "ReconfigurationResourceExhausted") || !f.told("NoRoom", "exceeded quota") {
		t.Errorf("told %q", f.events)
	}
}

func TestF122_UnschedulableGivesUpTheChangeAfterAWhile(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size = "L" })
	f.rest()
	f.unschedulable("L")
	if next := f.rest(); next > strategy.DefaultInterval {
		t.Errorf("next pass in %v", next)
	}
	f.record("InProgress", "2 x S")
	f.now = f.now.Add(unplacedGrace)
	f.settle("S")
	f.record("ResourceExhausted", "2 x S")
	f.has("r1:S* r2:S*")
}

// TestF122_PodsOnTheirWayOutGiveRoom: what they leave may be enough, so nothing is given up before they are gone.
func TestF122_PodsOnTheirWayOutGiveRoom(t *testing.T) {
	f := steady(t, 2, "S")
	f.change(func(s *Spec) { s.Size = "L" })
	f.rest()
	f.unschedulable("L")
	f.now = f.now.Add(time.Hour)
	at := metav1.NewTime(f.now)
	f.pods["web-r1"].DeletionTimestamp = &at
	f.rest()
	f.record("InProgress", "2 x S")
	f.settle("S")
	f.record("ResourceExhausted", "2 x S")
}

// TestF122_WhatHadNoRoomBeforeIsNotTheChangesFault: going to a smaller size is how a user helps himself.
func TestF122_WhatHadNoRoomBeforeIsNotTheChangesFault(t *testing.T) {
	f := newFake(t, specOf(2, "L"))
	f.rest()
	f.unschedulable("L")
	f.now = f.now.Add(time.Hour)
	f.rest()
	if c := f.condition(ConditionExhausted); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	f.change(func(s *Spec) { s.Size = "S" })
	f.rest()
	f.now = f.now.Add(time.Hour)
	f.settle("S")
	f.record("Finalized", "2 x S")
	f.has("r3:S* r4:S*")
}

func (f *fake) nightly(reported bool) {
	at := metav1.NewTime(f.now)
	f.group.Spec.Schedule = &Schedule{OnRefresh: OnRefresh{
		HydrationEstimate: metav1.Duration{Duration: time.Hour}, CompactionEstimate: metav1.Duration{Duration: 10 * time.Minute},
		Objects: []Refreshed{{Name: "sums", Every: metav1.Duration{Duration: 24 * time.Hour}, AlignedTo: &at, Reported: reported}},
	}}
}

// TestF123_OneReplicaInTheWindowOnly goes by the times that the passes themselves ask for.
func TestF123_OneReplicaInTheWindowOnly(t *testing.T) {
	f := newFake(t, specOf(3, "S"))
	f.nightly(false)
	begin := f.now
	f.now = begin.Add(time.Hour)
	next := f.settle("S")
	f.has("")
	f.record("", "0 x S")
	for _, edge := range []struct {
		at   time.Duration
		want string
	}{{23 * time.Hour, "r1:S*"}, {24 * time.Hour, "r1:S*"}, {24*time.Hour + 10*time.Minute, ""}, {47 * time.Hour, "r1:S*"}} {
		f.now = f.now.Add(next)
		if late := f.now.Sub(begin.Add(edge.at)); late < 0 || late > time.Millisecond {
			t.Fatalf("a pass at %v, want one at %v", f.now.Sub(begin), edge.at)
		}
		next = f.settle("S")
		f.has(edge.want)
	}
	if reason := f.group.Status.Members[0].Reason; reason != "OnRefresh: refresh of sums" {
		t.Errorf("reason %q", reason)
	}
}

func TestF123_TheWindowIsOpenUntilTheRefreshIsReported(t *testing.T) {
	f := newFake(t, specOf(1, "S"))
	f.nightly(true)
	begin := f.now
	f.settle("S")
	f.has("r1:S*") // Nothing was reported yet.
	f.group.Annotations = map[string]string{RefreshedPrefix + "sums": begin.Add(24 * time.Hour).Format(time.RFC3339)}
	f.touched()
	f.now = begin.Add(time.Hour)
	f.settle("S")
	f.has("")
	f.now = begin.Add(30 * time.Hour) // The refresh is late.
	f.settle("S")
	f.has("r1:S*")
}

func (f *fake) bursting(t *testing.T) {
	t.Helper()
	f.group.Spec.HydrationBurst = &Burst{Size: "L", Linger: &metav1.Duration{Duration: time.Minute}}
	f.rest()
	f.has("r1:S r2:S r3:L")
}

func TestF124_ABurstServesUntilASteadyReplicaIsReady(t *testing.T) {
	f := newFake(t, specOf(2, "S"))
	f.bursting(t)
	f.settle("L")
	f.has("r1:S r2:S r3:L*")
	f.settle("S", "L")
	f.has("r1:S* r2:S* r3:L*")
	f.now = f.now.Add(time.Minute + time.Millisecond)
	f.settle("S", "L")
	f.has("r1:S* r2:S*")
	if !f.told("BurstStarted") || !f.told("BurstFinished", "LingerElapsed") {
		t.Errorf("told %q", f.events)
	}
	for _, pod := range f.pods {
		pod.Status.Conditions = nil
	}
	f.rest()
	f.has("r1:S r2:S r3:L")
}

func TestF124_WithoutAReadinessProbeThereIsNothingToHydrate(t *testing.T) {
	f := newFake(t, Spec{Replicas: 1, Size: "S", PodTemplate: json.RawMessage(`{"spec":{"containers":[{"name":"a","image":"b"}]}}`)})
	f.group.Spec.HydrationBurst = &Burst{Size: "L"}
	f.rest()
	f.has("r1:S")
}

func TestF125_BreakGlass(t *testing.T) {
	f := newFake(t, specOf(2, "S"))
	f.bursting(t)
	f.withoutBursts = true
	f.rest()
	f.has("r1:S r2:S")
	f.settle("S")
	f.has("r1:S* r2:S*")
}

func TestF126_ABurstThatIsNotWantedAnyMoreGoesAtOnce(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"no policy":   func(s *Spec) { s.HydrationBurst = nil },
		"another":     func(s *Spec) { s.HydrationBurst = &Burst{Size: "M"} },
		"no replicas": func(s *Spec) { s.Replicas = 0 },
	} {
		f := newFake(t, specOf(2, "S"))
		f.bursting(t)
		f.change(change)
		f.rest()
		for _, pod := range f.pods {
			if pod.Labels[SizeLabel] == "L" && !going(pod) {
				t.Errorf("%s: %s is there still", name, pod.Name)
			}
		}
	}
}

func TestF127_NamesAreNotUsedTwiceWhilePodsAreThere(t *testing.T) {
	f := steady(t, 2, "S")
	for _, pod := range f.pods { // Somebody deletes them all, and they take their time.
		at := metav1.NewTime(f.now)
		pod.DeletionTimestamp = &at
	}
	f.rest()
	f.has("r3:S r4:S")
	f.pods["web-r4"].Status.Phase = corev1.PodFailed
	f.settle("S")
	f.has("r3:S* r5:S*")
	if !f.told("ReplicaEnded", "r4") {
		t.Errorf("told %q", f.events)
	}
}

func TestF128_AnObserverWritesNothing(t *testing.T) {
	f := steady(t, 2, "S")
	f.observes = true
	before := len(f.writes)
	f.change(func(s *Spec) { s.Size = "L" })
	delete(f.pods, "web-r1")
	f.rest()
	if len(f.writes) != before || len(f.events) != 0 {
		t.Errorf("wrote %v, told %v", f.writes[before:], f.events)
	}
	f.observes = false
	f.settle("S", "L")
	f.record("Finalized", "2 x L")
}

func TestBadInputThatIsSeenLater(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Spec)
		reason  string
		message string
	}{
		"unknown size":       {func(s *Spec) { s.Size = "XXL" }, "UnknownSize", `no SizeClass "XXL"`},
		"unknown burst size": {func(s *Spec) { s.HydrationBurst = &Burst{Size: "XXL"} }, "UnknownSize", `no SizeClass "XXL"`},
		"unknown field": {func(s *Spec) {
			s.PodTemplate = json.RawMessage(`{"spec":{"containers":[{"name":"a","image":"b","imagee":1}]}}`)
		}, "InvalidTemplate", "imagee"},
		"bad pod": {func(s *Spec) {
			s.PodTemplate = json.RawMessage(`{"spec":{"containers":[{"name":"a","image":"b","ports":[{"containerPort":99999}]}]}}`)
		}, "InvalidTemplate", "containerPort"},
		"burst of the same size": {func(s *Spec) { s.HydrationBurst = &Burst{Size: "S"} }, "InvalidSpec", "burst size is the size of the set"},
	} {
		f := steady(t, 2, "S")
		f.change(c.change)
		f.rest()
		got := f.condition(ConditionAccepted)
		if got.Status != metav1.ConditionFalse || got.Reason != c.reason || !strings.Contains(got.Message, c.message) || !f.told("Warning", c.reason, c.message) {
			t.Errorf("%s: condition %+v, told %q", name, got, f.events)
		}
		if s := f.group.Status; s.ObservedGeneration != 2 || s.Accepted.Generation != 1 {
			t.Errorf("%s: observed %d, accepted %d", name, s.ObservedGeneration, s.Accepted.Generation)
		}
		delete(f.pods, "web-r1") // What was accepted is tended meanwhile.
		f.settle("S")
		f.has("r2:S* r3:S*")
		f.change(func(s *Spec) { *s = specOf(3, "S") })
		f.settle("S")
		f.has("r2:S* r3:S* r4:S*")
	}
}

func TestARemovedSizeTearsNothingDown(t *testing.T) {
	f := steady(t, 2, "S")
	delete(f.sizes, "S")
	f.rest()
	f.has("r1:S* r2:S*")
	if c := f.condition(ConditionReplicaFailure); c.Status != metav1.ConditionTrue || c.Reason != "UnknownSize" || !f.told("UnknownSize") {
		t.Errorf("condition %+v, told %q", c, f.events)
	}
	delete(f.pods, "web-r1")
	f.rest()
	f.has("r2:S*")
	f.sizes["S"] = sizeOf(1)
	f.settle("S")
	f.has("r2:S* r3:S*")
	if c := f.condition(ConditionReplicaFailure); c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
}

// TestRefusedPodsDoNotHoldUpTheDeadline: a target that nobody lets in ends at its deadline as any other.
func TestRefusedPodsDoNotHoldUpTheDeadline(t *testing.T) {
	f := steady(t, 2, "S")
	f.refuses = apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("violates PodSecurity"))
	f.change(func(s *Spec) {
		s.Size, s.Reconfiguration = "L", Reconfigure{Timeout: &metav1.Duration{Duration: time.Minute}}
	})
	for range 3 {
		if next, err := f.pass(); err != nil || next > strategy.DefaultInterval {
			t.Fatalf("next pass in %v, %v", next, err)
		}
	}
	if c := f.condition(ConditionReplicaFailure); !strings.Contains(c.Message, "violates PodSecurity") {
		t.Errorf("condition %+v", c)
	}
	f.now = f.now.Add(time.Minute)
	f.settle("S")
	f.record("TimedOut", "2 x S")
	f.has("r1:S* r2:S*")
}

func TestANameThatSomebodyElseHas(t *testing.T) {
	f := newFake(t, specOf(1, "S"))
	f.pods["web-r1"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-r1", UID: "foreign"}}
	for range 3 {
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if c := f.condition(ConditionReplicaFailure); c.Reason != "PodNameTaken" {
		t.Errorf("condition %+v", c)
	}
	delete(f.pods, "web-r1")
	f.settle("S")
	f.has("r1:S*")
}

func TestZonesBecomeAffinity(t *testing.T) {
	f := newFake(t, specOf(1, "S"))
	f.group.Spec.Zones = []string{"b", "a"}
	f.settle("S")
	pod := f.pods["web-r1"]
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || !slices.Equal(terms[0].MatchExpressions[0].Values, []string{"a", "b"}) {
		t.Errorf("terms %+v", terms)
	}
	f.change(func(s *Spec) { s.Zones = []string{"a", "b"} })
	f.settle("S")
	f.record("", "1 x S{a,b}")
	f.change(func(s *Spec) { s.Zones = []string{"a"} })
	f.settle("S")
	f.record("Finalized", "1 x S{a}")
}

// servedSeeds is how many storms an ordinary test runs over the served kind; the kernel has ten thousand of its own.
const servedSeeds = 100 / slowdown

// TestStormsOverTheServedKind lets anything happen to a group, kills before any write included, and holds that all comes to rest in the
// end, with what was declared.
func TestStormsOverTheServedKind(t *testing.T) {
	n := uint64(servedSeeds)
	if text := os.Getenv("STRATEGY_SEEDS"); text != "" {
		n, _ = strconv.ParseUint(text, 10, 64)
	}
	for seed := range n {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { storm(t, seed) }) {
			return
		}
	}
}

func storm(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	f := newFake(t, specOf(1+rng.IntN(2), "S"))
	for range 30 {
		f.deed(rng)
		before := f.realizedReady()
		at := f.group.Status.Realized
		f.dies(rng.IntN(8))
		if now := f.group.Status.Realized; at != nil && now.Shape == at.Shape && f.realizedReady() < before {
			t.Fatalf("seed %d: of %d ready replicas of what is realized, %s, %d are left", seed, before, at.Shape, f.realizedReady())
		}
	}
	f.change(func(s *Spec) { *s = specOf(2, "S") })
	f.quota = -1
	f.sizes["M"] = sizeOf(2)
	f.settle("S", "M", "L")
	f.now = f.now.Add(25 * time.Hour)
	f.settle("S", "M", "L")
	if d := f.durable(); d.Config.Shape.Size != "S" || len(f.pods) != 2 || d.Burst.Present() {
		t.Errorf("seed %d: in the end %s with %d pods", seed, d.View(), len(f.pods))
	}
}

// realizedReady counts the ready pods of what is realized, as far as they are wanted.
func (f *fake) realizedReady() int {
	d, begun := f.group.durable()
	if !begun {
		return 0
	}
	n := 0
	for _, pod := range f.pods {
		if ready(pod) && shapeOf(pod) == d.Config.Shape {
			n++
		}
	}
	return min(n, d.Config.ReplicationFactor)
}

func (f *fake) deed(rng *rand.Rand) {
	switch rng.IntN(8) {
	case 0, 1:
		f.change(func(s *Spec) {
			s.Size, s.HydrationBurst = []string{"S", "M"}[rng.IntN(2)], nil
			s.Reconfiguration.Timeout = &metav1.Duration{Duration: time.Duration(rng.IntN(60)) * time.Second}
			s.Reconfiguration.OnTimeout = []string{"Rollback", "Commit"}[rng.IntN(2)]
			if rng.IntN(2) == 0 {
				s.HydrationBurst = &Burst{Size: "L"}
			}
			if rng.IntN(3) == 0 {
				s.PodTemplate = json.RawMessage(strings.ReplaceAll(probed, "web:v1", fmt.Sprint("web:v", rng.IntN(3))))
			}
		})
	case 2, 3:
		f.kubelet([]string{"S", "M", "L"}[:rng.IntN(4)]...)
	case 4:
		f.quota = []int{-1, 2, 3, 5}[rng.IntN(4)]
	case 5:
		f.now = f.now.Add(time.Duration(rng.IntN(40)) * time.Second)
	case 6:
		if names := slices.Sorted(maps.Keys(f.pods)); len(names) > 0 {
			f.pods[names[rng.IntN(len(names))]].Status.Phase = corev1.PodFailed
		}
	case 7:
		if _, ok := f.sizes["M"]; ok {
			delete(f.sizes, "M")
		} else {
			f.sizes["M"] = sizeOf(2)
		}
	}
}
