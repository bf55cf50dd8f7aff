package deployment

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// world is a cluster of one Deployment: its sets have pods that become ready when chance wants it, and statuses that lag behind.
type world struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	d      *appsv1.Deployment
	sets   []*appsv1.ReplicaSet
	// pods are the readinesses of each set's pods, by set name.
	pods map[string][]bool
}

func newWorld(t *testing.T, seed int64, replicas int32, surge, unavailable intstr.IntOrString) *world {
	limit, deadline := int32(2), int32(600)
	return &world{
		t: t, random: rand.New(rand.NewSource(seed)), now: time.Unix(1700000000, 0), pods: map[string][]bool{},
		d: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d", Generation: 1},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, RevisionHistoryLimit: &limit, ProgressDeadlineSeconds: &deadline,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: template("v1"),
				Strategy: appsv1.DeploymentStrategy{
					Type:          appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
				},
			},
		},
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func (w *world) plan() *plan {
	w.t.Helper()
	p, err := decide(observed{deployment: w.d, sets: w.sets, oldPods: w.oldPods(), now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) oldPods() bool {
	for _, set := range w.sets {
		if set.Spec.Template.Spec.Containers[0].Image != w.d.Spec.Template.Spec.Containers[0].Image && len(w.pods[set.Name]) > 0 {
			return true
		}
	}
	return false
}

// step plans once and carries the plan out.
func (w *world) step() *plan {
	p := w.plan()
	var sets []*appsv1.ReplicaSet
	for _, set := range p.sets {
		if set.before == nil {
			set.UID, set.CreationTimestamp = types.UID(set.Name), metav1.NewTime(w.now)
		}
		if set.before == nil || set.changed() {
			set.Generation++
		}
		sets = append(sets, set.ReplicaSet)
	}
	for _, gone := range p.remove {
		for i := range sets {
			if sets[i].Name == gone.Name {
				sets = append(sets[:i:i], sets[i+1:]...)
				break
			}
		}
	}
	w.sets, w.d = sets, p.deployment
	w.now = w.now.Add(time.Second)
	return p
}

// act lets the sets follow their sizes, unready pods going first.
func (w *world) act(set *appsv1.ReplicaSet) {
	pods := w.pods[set.Name]
	for len(pods) < int(*set.Spec.Replicas) {
		pods = append(pods, false)
	}
	for len(pods) > int(*set.Spec.Replicas) {
		victim := 0
		for i, ready := range pods {
			if !ready {
				victim = i
			}
		}
		pods = append(pods[:victim:victim], pods[victim+1:]...)
	}
	w.pods[set.Name] = pods
}

// report brings a set's status up to date.
func (w *world) report(set *appsv1.ReplicaSet) {
	set.Status.ObservedGeneration = set.Generation
	set.Status.Replicas = int32(len(w.pods[set.Name]))
	set.Status.ReadyReplicas = int32(w.ready(set))
	set.Status.AvailableReplicas = set.Status.ReadyReplicas
}

func (w *world) ready(set *appsv1.ReplicaSet) int {
	n := 0
	for _, ready := range w.pods[set.Name] {
		if ready {
			n++
		}
	}
	return n
}

func (w *world) totals() (size, ready int) {
	for _, set := range w.sets {
		size += int(*set.Spec.Replicas)
		ready += w.ready(set)
	}
	return size, ready
}

// chance lets one thing happen: pods get ready, a set follows its size, a set reports.
func (w *world) chance() {
	if len(w.sets) == 0 {
		return
	}
	set := w.sets[w.random.Intn(len(w.sets))]
	switch w.random.Intn(3) {
	case 0:
		for i := range w.pods[set.Name] {
			w.pods[set.Name][i] = w.pods[set.Name][i] || w.random.Intn(3) == 0
		}
	case 1:
		w.act(set)
	case 2:
		w.report(set)
	}
}

// settle lets everything happen until nothing changes any more.
func (w *world) settle() {
	w.t.Helper()
	for range 200 {
		p := w.step()
		for _, set := range w.sets {
			w.act(set)
			for i := range w.pods[set.Name] {
				w.pods[set.Name][i] = true
			}
			w.report(set)
		}
		if next := w.plan(); !p.statusChanged() && !changes(p) && !next.statusChanged() && !changes(next) {
			return
		}
	}
	w.t.Fatalf("never at rest: %s", w)
}

func changes(p *plan) bool {
	for _, set := range p.sets {
		if set.before == nil || set.changed() {
			return true
		}
	}
	return len(p.remove) > 0
}

func (w *world) String() string {
	text := fmt.Sprintf("deployment %d", *w.d.Spec.Replicas)
	for _, set := range w.sets {
		text += fmt.Sprintf("; %s size %d pods %d ready %d status %d/%d", set.Name, *set.Spec.Replicas,
			len(w.pods[set.Name]), w.ready(set), set.Status.AvailableReplicas, set.Status.Replicas)
	}
	return text
}
