package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// reconcile makes the copies of one Mirror what they should be, and says so in its status.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	m, err := c.mirror(key)
	if m == nil || err != nil {
		return err
	}
	if m.DeletionTimestamp != nil {
		return c.finalize(ctx, m)
	}
	if !slices.Contains(m.Finalizers, finalizer) {
		m.Finalizers = append(m.Finalizers, finalizer)
		return c.update(ctx, m)
	}
	original, err := c.original(m)
	if err != nil {
		return err
	}
	if original == nil {
		return c.report(ctx, m, 0, metav1.ConditionFalse, "NoOriginal", "there is no ConfigMap "+m.Spec.ConfigMap)
	}
	for _, namespace := range m.Spec.Namespaces {
		if err := c.copyTo(ctx, m, original, namespace); err != nil {
			return c.failed(ctx, m, err)
		}
	}
	if err := c.prune(ctx, m, m.Spec.Namespaces); err != nil {
		return err
	}
	return c.report(ctx, m, len(m.Spec.Namespaces), metav1.ConditionTrue, "Copied", "every namespace has its copy")
}

// finalize removes all copies, and then lets the Mirror go.
func (c *controller) finalize(ctx context.Context, m *Mirror) error {
	if !slices.Contains(m.Finalizers, finalizer) {
		return nil
	}
	if err := c.prune(ctx, m, nil); err != nil {
		return err
	}
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == finalizer })
	return c.update(ctx, m)
}

func (c *controller) original(m *Mirror) (*v1.ConfigMap, error) {
	object, there, err := c.configMaps.GetIndexer().GetByKey(m.Namespace + "/" + m.Spec.ConfigMap)
	if err != nil || !there {
		return nil, err
	}
	return object.(*v1.ConfigMap), nil
}

// copyTo makes one copy, or brings it up to date. What somebody else has put there is left alone.
func (c *controller) copyTo(ctx context.Context, m *Mirror, original *v1.ConfigMap, namespace string) error {
	want := &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: original.Name, Labels: map[string]string{copyOf: m.key()}},
		Data:       maps.Clone(original.Data), BinaryData: maps.Clone(original.BinaryData),
	}
	client := c.typed.CoreV1().ConfigMaps(namespace)
	have, err := client.Get(ctx, original.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case have.Labels[copyOf] != m.key():
		return fmt.Errorf("cannot copy to %s/%s: it is there already and is not a copy of this mirror", namespace, original.Name)
	case equality.Semantic.DeepEqual(have.Data, want.Data) && equality.Semantic.DeepEqual(have.BinaryData, want.BinaryData):
		return nil
	}
	have.Data, have.BinaryData = want.Data, want.BinaryData
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

// prune removes the copies in namespaces other than those named.
func (c *controller) prune(ctx context.Context, m *Mirror, keep []string) error {
	copies, err := c.typed.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: copyOf + "=" + m.key()})
	if err != nil {
		return err
	}
	for _, one := range copies.Items {
		if slices.Contains(keep, one.Namespace) && one.Name == m.Spec.ConfigMap {
			continue
		}
		err := c.typed.CoreV1().ConfigMaps(one.Namespace).Delete(ctx, one.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// failed says in the status why copies are missing, and returns the reason so that it is tried again.
func (c *controller) failed(ctx context.Context, m *Mirror, why error) error {
	if err := c.report(ctx, m, int(m.Status.Copies), metav1.ConditionFalse, "Failed", why.Error()); err != nil {
		return fmt.Errorf("%w; and cannot say so: %w", why, err)
	}
	return why
}

// report writes the status if it is another one.
func (c *controller) report(ctx context.Context, m *Mirror, copies int, ready metav1.ConditionStatus, reason, message string) error {
	before := *m
	before.Status.Conditions = slices.Clone(m.Status.Conditions)
	m.Status.Copies, m.Status.ObservedGeneration = int64(copies), m.Generation
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: ready, Reason: reason, Message: message, ObservedGeneration: m.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return nil
	}
	object, err := m.toObject()
	if err != nil {
		return err
	}
	_, err = c.untyped.Resource(mirrors).Namespace(m.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

func (c *controller) update(ctx context.Context, m *Mirror) error {
	object, err := m.toObject()
	if err != nil {
		return err
	}
	_, err = c.untyped.Resource(mirrors).Namespace(m.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	return err
}
