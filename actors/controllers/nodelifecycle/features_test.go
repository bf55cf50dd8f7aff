package nodelifecycle

import (
	"log/slog"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/cache/cachetest"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// hands is a clock that the test moves.
type hands struct {
	kube.Clock
	at time.Time
}

func (h *hands) Now() time.Time { return h.at }

type unheard struct{}

func (unheard) Last(string) (time.Time, bool) { return time.Time{}, false }

// TestF059_AStaleLeaseOverridesAStoredReady: the Node says it is ready, its Lease is not renewed. What is stored says Unknown once the lease
// is stale, with one transition, and nothing moves from then on.
func TestF059_AStaleLeaseOverridesAStoredReady(t *testing.T) {
	source, clock := cachetest.NewMemory(), &hands{at: now}
	stored := node(isReady, condition("Theirs", corev1.ConditionTrue))
	early, renewed := metav1.NewTime(now.Add(-time.Hour)), metav1.NewMicroTime(now)
	stored.Status.Conditions[0].LastTransitionTime = early
	api := fake.NewClientset(stored)
	r := &reconciler{
		cache: cache.New(source, slog.New(slog.DiscardHandler)), client: api, clock: clock, events: record.NewFakeRecorder(10), beats: unheard{},
		since: now.Add(-time.Hour), missing: map[string]time.Time{},
	}
	cachetest.Put(source, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
	pass := func(after time.Duration) corev1.NodeCondition {
		t.Helper()
		clock.at = now.Add(after)
		stored, err := api.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cachetest.Put(source, stored)
		if _, err := r.Reconcile(t.Context(), kube.Key{Name: "n"}); err != nil {
			t.Fatal(err)
		}
		if stored, err = api.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{}); err != nil || len(stored.Status.Conditions) < 2 || stored.Status.Conditions[1].Status != corev1.ConditionTrue {
			t.Fatalf("%+v, %v", stored.Status, err)
		}
		return stored.Status.Conditions[0]
	}
	if c := pass(39 * time.Second); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(&early) {
		t.Errorf("with a fresh lease: %+v", c)
	}
	moved := metav1.NewTime(now.Add(grace))
	for _, after := range []time.Duration{grace, grace + time.Minute, time.Hour} {
		if c := pass(after); c.Status != corev1.ConditionUnknown || c.Reason != "NodeStatusUnknown" || !c.LastTransitionTime.Equal(&moved) {
			t.Errorf("with a lease of %v ago: %+v", after, c)
		}
	}
}
