package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nodeactor/nodeactor/actors/cache"
	"github.com/nodeactor/nodeactor/actors/operator/kube"
)

func keyOf(m *cache.Meta) kube.Key { return kube.Key{Name: string(m.UID)} }

// touched names the objects that a change makes worth a look: the object itself, what depends on it, and owners that wait for it.
func touched(c *cache.Cache, change cache.Change) []kube.Key {
	var keys []kube.Key
	meta := change.Meta()
	if !change.Deleted() && needs(c, meta) {
		keys = append(keys, keyOf(meta))
	}
	if change.Deleted() || waitsForDependents(meta) && !alreadyWaited(change) {
		for _, dependent := range c.Dependents(meta.UID) {
			keys = append(keys, keyOf(dependent))
		}
	}
	return append(keys, waitingOwners(c, change)...)
}

func alreadyWaited(change cache.Change) bool {
	return change.OldMeta != nil && waitsForDependents(change.OldMeta)
}

// waitingOwners names the owners, before and after a change, that wait for their dependents.
func waitingOwners(c *cache.Cache, change cache.Change) []kube.Key {
	var keys []kube.Key
	for _, side := range []*cache.Meta{change.OldMeta, change.NewMeta} {
		if side == nil {
			continue
		}
		for _, ref := range side.Owners {
			if owner := c.MetaByUID(ref.UID); owner != nil && waitsForDependents(owner) {
				keys = append(keys, keyOf(owner))
			}
		}
	}
	return keys
}

// needs tells whether an object needs attention now. It asks memory only: an owner that memory does not know needs attention.
func needs(c *cache.Cache, m *cache.Meta) bool {
	if m.Opaque {
		return false
	}
	if m.Deleting && (m.HasFinalizer(metav1.FinalizerOrphanDependents) || m.HasFinalizer(metav1.FinalizerDeleteDependents)) {
		return true
	}
	for _, ref := range m.Owners {
		if known, state := fromMemory(c, m, ref); !known || state != solid {
			return true
		}
	}
	return false
}

// fromMemory tells the state of an owner from the metadata view; false when the view does not know it.
func fromMemory(c *cache.Cache, dependent *cache.Meta, ref cache.Owner) (bool, ownerState) {
	owner := c.MetaByUID(ref.UID)
	if owner == nil || !matches(owner, ref) {
		return false, absent
	}
	switch {
	case owner.Namespace != "" && dependent.Namespace == "":
		return true, solid // a namespaced owner of a cluster-scoped object cannot be resolved
	case owner.Namespace != "" && owner.Namespace != dependent.Namespace:
		return true, absent
	case waitsForDependents(owner):
		return true, leaving
	}
	return true, solid
}

// matches tells whether an object is the one a reference means; the version may differ, it is the same object.
func matches(owner *cache.Meta, ref cache.Owner) bool {
	if owner.Opaque || owner.Name != ref.Name || owner.Kind != ref.Kind {
		return false
	}
	stored, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	named, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && stored.Group == named.Group
}

// initial names everything that needs attention now.
func initial(c *cache.Cache) []kube.Key {
	var candidates []*cache.Meta
	c.Metas(func(m *cache.Meta) bool {
		if m.Deleting || len(m.Owners) > 0 {
			candidates = append(candidates, m)
		}
		return true
	})
	var keys []kube.Key
	for _, m := range candidates {
		if needs(c, m) {
			keys = append(keys, keyOf(m))
		}
	}
	return keys
}
