package gc

import (
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodeactor/nodeactor/actors/cache"
)

// patched is the body of a merge patch of metadata. Lists are given whole, since that is what a merge patch replaces, and the
// revision they were read at goes with them.
type patched struct {
	Metadata patchedMetadata `json:"metadata"`
}

type patchedMetadata struct {
	UID             types.UID                `json:"uid"`
	ResourceVersion string                   `json:"resourceVersion"`
	OwnerReferences *[]metav1.OwnerReference `json:"ownerReferences,omitempty"`
	Finalizers      *[]string                `json:"finalizers,omitempty"`
}

func patchOf(m *cache.Meta) patched {
	return patched{patchedMetadata{UID: m.UID, ResourceVersion: strconv.FormatInt(m.Revision, 10)}}
}

func (p patched) bytes() ([]byte, error) { return json.Marshal(p) }

// withoutFinalizer is the patch that takes one finalizer.
func withoutFinalizer(m *cache.Meta, name string) patched {
	left := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == name })
	if left == nil {
		left = []string{}
	}
	p := patchOf(m)
	p.Metadata.Finalizers = &left
	return p
}

// withoutOwners is the patch that takes the references to some owners.
func withoutOwners(m *cache.Meta, gone []types.UID) patched {
	return withOwners(m, func(ref *metav1.OwnerReference) bool { return !slices.Contains(gone, ref.UID) })
}

// withoutBlocking is the patch that makes all references non-blocking.
func withoutBlocking(m *cache.Meta) patched {
	return withOwners(m, func(ref *metav1.OwnerReference) bool { ref.BlockOwnerDeletion = nil; return true })
}

// withOwners is the patch with the references that keep lets through.
func withOwners(m *cache.Meta, keep func(*metav1.OwnerReference) bool) patched {
	refs := []metav1.OwnerReference{}
	for _, owner := range m.Owners {
		if ref := referenceOf(owner); keep(&ref) {
			refs = append(refs, ref)
		}
	}
	p := patchOf(m)
	p.Metadata.OwnerReferences = &refs
	return p
}

func referenceOf(o cache.Owner) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
	yes := true
	if o.Controller {
		ref.Controller = &yes
	}
	if o.Blocks {
		ref.BlockOwnerDeletion = &yes
	}
	return ref
}
