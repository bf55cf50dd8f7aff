package replicagroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatOnlyNamesAGroupIsNotItsOwn: a pod is a group's when the group is its controller, not when it is one of its owners.
func TestWhatOnlyNamesAGroupIsNotItsOwn(t *testing.T) {
	yes := true
	pod := func(name string, ref metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{ref}}}
	}
	all := []*corev1.Pod{
		pod("named", metav1.OwnerReference{UID: "group"}),
		pod("controlled", metav1.OwnerReference{UID: "group", Controller: &yes}),
		pod("other", metav1.OwnerReference{UID: "other", Controller: &yes}),
	}
	if kept := controlled(all, "group"); len(kept) != 1 || kept[0].Name != "controlled" {
		t.Errorf("kept %v", kept)
	}
}
