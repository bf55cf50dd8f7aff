package gc

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

// Limits of acting.
const (
	// parallel is how many objects are collected at a time.
	parallel = 32
	// parallelOrphans is how many dependents of one object lose their reference at a time.
	parallelOrphans = 8
)

// reconciler runs passes over objects that need attention.
type reconciler struct {
	cache  *cache.Cache
	client metadata.Interface
	mapper meta.ResettableRESTMapper
	// slots bounds the passes that act at the same time.
	slots chan struct{}
}

// Reconcile implements kube.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, key kube.Key) (kube.Action, error) {
	m := r.cache.MetaByUID(types.UID(key.Name))
	if m == nil || !needs(r.cache, m) {
		return kube.Done(), nil
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return kube.None(), ctx.Err()
	}
	i := item{Meta: m, dependents: r.cache.Dependents(m.UID)}
	for _, ref := range m.Owners {
		state, err := r.ownerState(ctx, m, ref)
		if err != nil {
			return kube.None(), fmt.Errorf("cannot judge owner %s %q of %s: %w", ref.Kind, ref.Name, m.Key, err)
		}
		i.owners = append(i.owners, state)
	}
	return kube.None(), r.execute(ctx, i, decide(i))
}

// execute carries out a verdict. An object that is gone meanwhile is what was wanted.
func (r *reconciler) execute(ctx context.Context, i item, v verdict) error {
	var err error
	switch v.verb {
	case rest:
		return nil
	case orphan:
		err = r.orphan(ctx, i)
	case release:
		err = r.patch(ctx, i.Meta, withoutFinalizer(i.Meta, metav1.FinalizerDeleteDependents))
	case forget:
		err = r.patch(ctx, i.Meta, withoutOwners(i.Meta, v.refs))
	case unblock:
		// the patch moves the revision on: the next pass deletes
		if blocks(i.Meta) {
			err = r.patch(ctx, i.Meta, withoutBlocking(i.Meta))
		} else {
			err = r.remove(ctx, i.Meta, v.policy)
		}
	case remove:
		err = r.remove(ctx, i.Meta, v.policy)
	}
	if apierrors.IsNotFound(err) {
		r.doubtDiscovery(i.Meta)
		return nil
	}
	return err
}

// doubtDiscovery learns resources anew when the API does not find what the store has: the version known of a custom resource may no
// longer be served. The next pass then asks for another.
func (r *reconciler) doubtDiscovery(m *cache.Meta) {
	if !cache.IsTyped(m.Key) && r.cache.MetaByUID(m.UID) != nil {
		r.mapper.Reset()
	}
}

func blocks(m *cache.Meta) bool {
	for _, owner := range m.Owners {
		if owner.Blocks {
			return true
		}
	}
	return false
}

func (r *reconciler) orphan(ctx context.Context, i item) error {
	err := kube.Parallel(ctx, parallelOrphans, len(i.dependents), func(ctx context.Context, n int) error {
		err := r.patch(ctx, i.dependents[n], withoutOwners(i.dependents[n], []types.UID{i.UID}))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.patch(ctx, i.Meta, withoutFinalizer(i.Meta, metav1.FinalizerOrphanDependents))
}

func (r *reconciler) patch(ctx context.Context, m *cache.Meta, p patched) error {
	body, err := p.bytes()
	if err != nil {
		return fmt.Errorf("cannot write patch of %s: %w", m.Key, err)
	}
	client, err := r.clientOf(m)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, m.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

func (r *reconciler) remove(ctx context.Context, m *cache.Meta, policy metav1.DeletionPropagation) error {
	client, err := r.clientOf(m)
	if err != nil {
		return err
	}
	revision := patchOf(m).Metadata.ResourceVersion
	return client.Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &m.UID, ResourceVersion: &revision},
		PropagationPolicy: &policy,
	})
}

// clientOf is the API's client for an object.
func (r *reconciler) clientOf(m *cache.Meta) (metadata.ResourceInterface, error) {
	resource, err := r.resourceOf(m)
	if err != nil {
		return nil, fmt.Errorf("cannot find the resource of %s: %w", m.Key, err)
	}
	if m.Namespace == "" {
		return r.client.Resource(resource), nil
	}
	return r.client.Resource(resource).Namespace(m.Namespace), nil
}

// resourceOf names an object's resource in a served version; the stored version of a custom resource need not be served.
func (r *reconciler) resourceOf(m *cache.Meta) (schema.GroupVersionResource, error) {
	if cache.IsTyped(m.Key) {
		return m.Resource(), nil
	}
	mapping, err := r.mapping(schema.FromAPIVersionAndKind(m.APIVersion, m.Kind).GroupKind())
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// mapping asks discovery, once more from the start when it does not know the kind.
func (r *reconciler) mapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := r.mapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		r.mapper.Reset()
		mapping, err = r.mapper.RESTMapping(kind, versions...)
	}
	return mapping, err
}

// ownerState tells the state of one owner, from memory or from the API.
func (r *reconciler) ownerState(ctx context.Context, dependent *cache.Meta, ref cache.Owner) (ownerState, error) {
	if known, state := fromMemory(r.cache, dependent, ref); known {
		return state, nil
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if typed, ok := cache.KindNamed(kind.GroupKind()); ok && !(typed.Namespaced && dependent.Namespace == "") {
		return absent, nil
	}
	mapping, err := r.mapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return solid, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if namespaced && dependent.Namespace == "" {
		return solid, nil
	}
	var client metadata.ResourceInterface = r.client.Resource(mapping.Resource)
	if namespaced {
		client = r.client.Resource(mapping.Resource).Namespace(dependent.Namespace)
	}
	found, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return absent, nil
	case err != nil:
		return solid, err
	case found.UID != ref.UID:
		return absent, nil
	}
	return solid, nil
}
