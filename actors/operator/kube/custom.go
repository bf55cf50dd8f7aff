package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// phaseParked is the phase of a custom resource whose reconciler is tried once in a while only.
const phaseParked = "Parked"

// customKinds are the kinds of custom resources on which can be told how their reconcilers do.
func (r *Reporter) customKinds() []cache.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []cache.Kind
	for _, c := range r.controllers {
		if c.Conditioned {
			kinds = append(kinds, c.Manifests)
		}
	}
	return kinds
}

// custom is the kind of a custom resource on which can be told how its reconcilers do.
func (r *Reporter) custom(about *cache.Meta) (cache.Kind, bool) {
	for _, kind := range r.customKinds() {
		if strings.HasPrefix(about.Key, kind.Prefix()) {
			return kind, true
		}
	}
	return cache.Kind{}, false
}

// writeCustom changes conditions of a custom resource. Its list of conditions cannot be merged by the API, so the whole of it is written on
// top of the version that was read; who comes between makes it fail, and it is tried again.
func (r *Reporter) writeCustom(ctx context.Context, kind cache.Kind, about *cache.Meta, changed []condition, moved map[string]bool) error {
	record, ok := r.cache.Record(kind, about.Namespace, about.Name)
	if !ok {
		return nil
	}
	patch, err := customPatch(record, about, changed, moved, r.clock.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reportWrite)
	defer cancel()
	_, err = r.metadata.Resource(kind.Resource).Namespace(about.Namespace).Patch(
		ctx, about.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: reporterComponent}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

// customPatch puts conditions among those of a stored custom resource.
func customPatch(record cache.Record, about *cache.Meta, changed []condition, moved map[string]bool, now time.Time) ([]byte, error) {
	plain, err := plainOf(record)
	if err != nil {
		return nil, fmt.Errorf("cannot read the conditions of %s: %w", about.Key, err)
	}
	before, _ := plain["status"].(map[string]any)
	list, _ := before["conditions"].([]any)
	status := map[string]any{}
	for _, c := range changed {
		list = putCondition(list, c, moved[c.Type], now)
		if c.Type == ConditionHealthy && c.Reason == ReasonCrashLoop {
			status["phase"] = phaseParked
		}
	}
	status["conditions"] = list
	patch := map[string]any{
		"metadata": map[string]any{"uid": about.UID, "resourceVersion": strconv.FormatInt(record.ModRevision, 10)},
		"status":   status,
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot encode conditions: %w", err)
	}
	return text, nil
}

// putCondition puts one condition into a list, in place of that of its type. The time of its last transition stays unless it moved.
func putCondition(list []any, c condition, moved bool, now time.Time) []any {
	fresh := map[string]any{"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message, "lastTransitionTime": metav1.NewTime(now)}
	i := slices.IndexFunc(list, func(other any) bool {
		object, ok := other.(map[string]any)
		return ok && object["type"] == c.Type
	})
	if i < 0 {
		return append(list, fresh)
	}
	if old, ok := list[i].(map[string]any); ok && !moved && old["lastTransitionTime"] != nil {
		fresh["lastTransitionTime"] = old["lastTransitionTime"]
	}
	list[i] = fresh
	return list
}
