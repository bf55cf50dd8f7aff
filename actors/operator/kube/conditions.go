package kube

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// conditioned are the built-in kinds whose status has conditions that are merged by their type.
var conditioned = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:                     true,
	{Group: "apps", Kind: "ReplicaSet"}:                     true,
	{Group: "apps", Kind: "StatefulSet"}:                    true,
	{Group: "apps", Kind: "DaemonSet"}:                      true,
	{Group: "batch", Kind: "Job"}:                           true,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          true,
	{Kind: "ReplicationController"}:                         true,
	{Kind: "PersistentVolumeClaim"}:                         true,
	{Kind: "Namespace"}:                                     true,
	{Kind: "Node"}:                                          true,
	{Kind: "Service"}:                                       true,
	{Kind: "Pod"}:                                           true,
}

// hasConditions tells whether an object can carry conditions.
func hasConditions(meta *cache.Meta) bool {
	return cache.IsTyped(meta.Key) && conditioned[schema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind).GroupKind()]
}

// storedConditions are the conditions of ours that an object carries now.
func storedConditions(record cache.Record) []condition {
	plain, err := plainOf(record)
	if err != nil {
		return nil
	}
	var object struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	text, err := json.Marshal(map[string]any{"status": plain["status"]})
	if err != nil || json.Unmarshal(text, &object) != nil {
		return nil
	}
	var ours []condition
	for _, c := range object.Status.Conditions {
		if c.Type == ConditionHealthy || c.Type == ConditionHotLoop {
			ours = append(ours, c)
		}
	}
	return ours
}

// patched is a condition with its times, which a strategic merge brings into the list by its type.
type patched struct {
	condition
	LastTransitionTime metav1.Time  `json:"lastTransitionTime,omitzero"`
	LastUpdateTime     *metav1.Time `json:"lastUpdateTime,omitempty"`
}

// conditionsPatch changes conditions of the object with this uid and of no other of the same name. moved tells which of them have
// another status than before.
func conditionsPatch(meta *cache.Meta, changed []condition, moved map[string]bool, now metav1.Time) ([]byte, error) {
	list := make([]patched, len(changed))
	for i, c := range changed {
		list[i].condition = c
		if moved[c.Type] {
			list[i].LastTransitionTime = now
		}
		if meta.Kind == "Deployment" {
			list[i].LastUpdateTime = &now
		}
	}
	patch := map[string]any{
		"metadata": map[string]any{"uid": meta.UID},
		"status":   map[string]any{"conditions": list},
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode conditions: %w", err)
	}
	return text, nil
}
