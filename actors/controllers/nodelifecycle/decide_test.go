package nodelifecycle

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Unix(1700000000, 0)

func node(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func condition(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: kind, Status: status}
}

func keysOf(taints []corev1.Taint) (keys []string) {
	for _, taint := range taints {
		keys = append(keys, taint.Key+":"+string(taint.Effect))
	}
	return keys
}

var isReady = condition(corev1.NodeReady, corev1.ConditionTrue)

func TestTaintsFollowConditions(t *testing.T) {
	for name, c := range map[string]struct {
		node *corev1.Node
		want []string
	}{
		"silent from the start": {node(), []string{"node.kubernetes.io/not-ready:NoSchedule"}},
		"ready":                 {node(isReady), nil},
		"not ready": {node(condition(corev1.NodeReady, corev1.ConditionFalse)),
			[]string{"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"}},
		"unknown": {node(condition(corev1.NodeReady, corev1.ConditionUnknown)),
			[]string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}},
		"under pressure": {node(isReady, condition(corev1.NodeDiskPressure, corev1.ConditionTrue), condition(corev1.NodePIDPressure, corev1.ConditionFalse)),
			[]string{"node.kubernetes.io/disk-pressure:NoSchedule"}},
	} {
		j := decide(observed{node: c.node, heard: now, now: now})
		if got := fmt.Sprint(keysOf(j.taints)); got != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestForeignTaintsStayAndOursGo(t *testing.T) {
	n := node(isReady)
	early := metav1.NewTime(now.Add(-time.Hour))
	n.Spec.Taints = []corev1.Taint{
		{Key: "mine", Effect: corev1.TaintEffectNoExecute, TimeAdded: &early},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: "other", Effect: corev1.TaintEffectNoExecute},
	}
	j := decide(observed{node: n, heard: now, now: now})
	if len(j.taints) != 2 || !j.taints[0].TimeAdded.Equal(&early) || !j.taints[1].TimeAdded.Time.Equal(now) {
		t.Errorf("taints %+v", j.taints)
	}
	n.Spec.Taints = j.taints
	if again := decide(observed{node: n, heard: now, now: now.Add(time.Minute / 2)}); fmt.Sprint(again.taints) != fmt.Sprint(j.taints) {
		t.Error("taints are not stable")
	}
}

func TestSilenceMakesUnknown(t *testing.T) {
	n := node(isReady)
	fresh := decide(observed{node: n, heard: now.Add(-30 * time.Second), now: now})
	if readiness(fresh.conditions) != corev1.ConditionTrue || fresh.after != 11*time.Second {
		t.Errorf("%v, again after %v", fresh.conditions, fresh.after)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	stale := decide(observed{node: n, pods: []*corev1.Pod{pod}, heard: now.Add(-grace), now: now})
	if readiness(stale.conditions) != corev1.ConditionUnknown || len(stale.conditions) != len(watched) || len(stale.silent) != 1 {
		t.Errorf("%+v", stale)
	}
	n = node(stale.conditions...)
	if again := decide(observed{node: n, heard: now.Add(-grace), now: now.Add(time.Hour)}); fmt.Sprint(again.conditions) != fmt.Sprint(stale.conditions) {
		t.Error("a silent node is written again and again")
	}
}

func TestEvictions(t *testing.T) {
	seconds := int64(300)
	tolerating := func(s *int64) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: s,
		}}}}
	}
	n := node(condition(corev1.NodeReady, corev1.ConditionUnknown))
	added := metav1.NewTime(now.Add(-100 * time.Second))
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}}
	pods := []*corev1.Pod{{}, tolerating(&seconds), tolerating(nil)}
	j := decide(observed{node: n, pods: pods, heard: now.Add(-time.Hour), now: now})
	if len(j.evict) != 1 || j.evict[0] != pods[0] || j.after != 200*time.Second {
		t.Errorf("evicts %d, again after %v", len(j.evict), j.after)
	}
	j = decide(observed{node: n, pods: pods, heard: now.Add(-time.Hour), now: now.Add(200 * time.Second)})
	if len(j.evict) != 2 {
		t.Errorf("evicts %d after the tolerated time", len(j.evict))
	}
}
